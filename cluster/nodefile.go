package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

const nodeFileName = "node.json"

// dataFormat is the version of everything in a data directory. A release that changes it
// reads the older ones. Files from before it was written down have the first.
const dataFormat = 1

// nodeFile is DATA/node.json: whose data this is, and what this node promised about
// founding a cluster.
type nodeFile struct {
	path string

	mu       sync.Mutex
	contents nodeContents // guarded by mu
}

type nodeContents struct {
	Format   int      `json:"format"`
	Cluster  string   `json:"cluster"`
	Name     string   `json:"name"`
	Founders founders `json:"founders,omitempty"`
}

// openNodeFile reads node.json, or writes it in a new data directory. Data of another
// cluster or node is refused: raft would go on with its log.
func openNodeFile(dir, cluster, name string) (*nodeFile, error) {
	f := &nodeFile{path: filepath.Join(dir, nodeFileName)}
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, f.write(nodeContents{Format: dataFormat, Cluster: cluster, Name: name})
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the data directory: %w", err)
	}
	if err := json.Unmarshal(data, &f.contents); err != nil {
		return nil, fmt.Errorf("%w: %s: %v", ErrCorrupt, f.path, err)
	}
	f.contents.Format = max(f.contents.Format, 1)
	switch {
	case f.contents.Format > dataFormat:
		return nil, fmt.Errorf("%w: %s has data format %d, this program knows %d: a later release of kontiki wrote it, run that one; to go back, let this node join anew with an empty --data-dir", ErrNewerData, dir, f.contents.Format, dataFormat)
	case f.contents.Cluster != cluster:
		return nil, fmt.Errorf("%w: %s was made by cluster %s, this node's certificate is of cluster %s: use another --data-dir, or the right cluster directory", ErrForeignData, dir, f.contents.Cluster, cluster)
	case f.contents.Name != name:
		return nil, fmt.Errorf("%w: %s was made by node %s, this one is %s: use another --data-dir, or the old name", ErrForeignData, dir, f.contents.Name, name)
	}
	return f, nil
}

// founders returns with whom this node has agreed to found a cluster.
func (f *nodeFile) founders() founders {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.contents.Founders
}

// agree promises to found a cluster with these and no others, durably: after a restart
// with no log, the promise tells this node from one that lost its log. It says whether
// the promise holds.
func (f *nodeFile) agree(with founders) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.contents.Founders != nil {
		return slices.Equal(f.contents.Founders, with), nil
	}
	contents := f.contents
	contents.Founders = with
	return true, f.writeLocked(contents)
}

// release takes the promise back, if it is this one.
func (f *nodeFile) release(from founders) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.contents.Founders, from) {
		return nil
	}
	contents := f.contents
	contents.Founders = nil
	return f.writeLocked(contents)
}

func (f *nodeFile) write(contents nodeContents) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writeLocked(contents)
}

// writeLocked replaces the file as a whole, and syncs it and its directory.
func (f *nodeFile) writeLocked(contents nodeContents) error {
	data, err := json.MarshalIndent(contents, "", "  ")
	if err != nil {
		return err
	}
	if err := replaceFile(f.path, append(data, '\n')); err != nil {
		return fmt.Errorf("cannot write the data directory: %w", err)
	}
	f.contents = contents
	return nil
}

func replaceFile(path string, data []byte) error {
	temp := path + ".tmp"
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return renameDurably(temp, path)
}

// renameDurably replaces path, and syncs its directory.
func renameDurably(temp, path string) error {
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir puts on disk which files a directory has.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
