package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
)

const nodeFileName = "node.json"

// dataFormat is the version of everything in a data directory. A release that changes it
// reads the older ones. Files from before it was written down have the first; since the second
// the log has compressed commands.
const dataFormat = 2

// nodeFile is DATA/node.json: whose data this is, what this node promised about founding a
// cluster, and whether it wants a vote.
type nodeFile struct {
	path string

	mu       sync.Mutex
	contents nodeContents // guarded by mu
}

type nodeContents struct {
	Format  int    `json:"format"`
	Cluster string `json:"cluster"`
	Name    string `json:"name"`

	// Founding is the id of the cluster's founding, see founding.go. While there are
	// Founders it is a promise: nobody may have founded anything yet.
	Founding string   `json:"founding,omitempty"`
	Founders founders `json:"founders,omitempty"`

	// Recovering is set while kontiki recover changes the data. Until it has ended, the data is
	// of no founding: the old one's members could go on with a log that has left them.
	Recovering bool `json:"recovering,omitempty"`

	// NonVoter is nil in data that was written before it was kept here.
	NonVoter *bool `json:"nonVoter,omitempty"`
}

// openNodeFile reads node.json, or writes it in a new data directory. Data of another
// cluster or node is refused: raft would go on with its log.
func openNodeFile(dir, cluster, name string) (*nodeFile, error) {
	f := &nodeFile{path: filepath.Join(dir, nodeFileName)}
	var err error
	f.contents, err = readNodeFile(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, f.write(nodeContents{Format: dataFormat, Cluster: cluster, Name: name})
	case err != nil:
		return nil, err
	case f.contents.Cluster != cluster:
		return nil, fmt.Errorf("%w: %s was made by cluster %s, this node's certificate is of cluster %s: use another --data-dir, or the right cluster directory", ErrForeignData, dir, f.contents.Cluster, cluster)
	case f.contents.Name != name:
		return nil, fmt.Errorf("%w: %s was made by node %s, this one is %s: use another --data-dir, or the old name", ErrForeignData, dir, f.contents.Name, name)
	}
	return f, f.change(func(c *nodeContents) { c.Format = dataFormat })
}

// readNodeFile refuses data of a later release: the rest of it may mean something else there.
func readNodeFile(dir string) (c nodeContents, err error) {
	path := filepath.Join(dir, nodeFileName)
	data, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("cannot read the data directory: %w", err)
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("%w: %s: %v", ErrCorrupt, path, err)
	}
	if c.Format > dataFormat {
		return c, fmt.Errorf("%w: %s has data format %d, this program knows %d: a later release of kontiki wrote it, run that one; to go back, let this node join anew with an empty --data-dir", ErrNewerData, dir, c.Format, dataFormat)
	}
	return c, nil
}

// checkFormat refuses data of a later release before anything else of it is read: its log would be
// taken for a damaged one.
func checkFormat(dir string) error {
	if _, err := readNodeFile(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// NodeName returns whose data is in a data directory.
func NodeName(dir string) (string, error) {
	contents, err := readNodeFile(dir)
	return contents.Name, err
}

// founders returns with whom this node has agreed to found a cluster.
func (f *nodeFile) founders() founders {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.contents.Founders
}

// founding returns the id of this node's cluster, even if it is only promised; empty if none.
func (f *nodeFile) founding() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.contents.Founding
}

// settled is founding without promises: the cluster that this node belongs to for good.
func (f *nodeFile) settled() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.contents.Founders != nil {
		return ""
	}
	return f.contents.Founding
}

// foundings is what a listener tells others of this file.
func (f *nodeFile) foundings(cluster string) foundings {
	return foundings{first: firstFounding(cluster), promised: f.founding, settled: f.settled}
}

// nonVoter says whether this node wants no vote.
func (f *nodeFile) nonVoter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.contents.NonVoter != nil && *f.contents.NonVoter
}

// complete brings data of older programs up to date: what the file does not say follows
// from whether there is a log, and from the command line.
func (f *nodeFile) complete(hasState, nonVoter bool) error {
	return f.change(func(c *nodeContents) {
		if c.Founding == "" && (hasState || c.Founders != nil) {
			c.Founding = firstFounding(c.Cluster)
		}
		if hasState {
			c.Founders = nil
		}
		if c.NonVoter == nil {
			c.NonVoter = &nonVoter
		}
	})
}

// settle ends the promise to found: this node has data of that cluster. From here on an
// empty log under this file means that it was lost.
func (f *nodeFile) settle() error {
	return f.change(func(c *nodeContents) { c.Founders = nil })
}

// adopt makes this node one of the cluster that was founded under id.
func (f *nodeFile) adopt(id string) error {
	return f.change(func(c *nodeContents) { c.Founding = id })
}

// want notes whether this node wants a vote.
func (f *nodeFile) want(vote bool) error {
	return f.change(func(c *nodeContents) { nonVoter := !vote; c.NonVoter = &nonVoter })
}

// recovering says whether a recovery has begun and not ended.
func (f *nodeFile) recovering() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.contents.Recovering
}

// startRecovery notes that the data is about to change, cancelRecovery that it did not, and
// endRecovery that it did: it is that of the only member of a founding of its own.
func (f *nodeFile) startRecovery() error {
	return f.change(func(c *nodeContents) { c.Recovering = true })
}

func (f *nodeFile) cancelRecovery() error {
	return f.change(func(c *nodeContents) { c.Recovering = false })
}

func (f *nodeFile) endRecovery() error {
	return f.change(func(c *nodeContents) {
		vote := false
		c.Founding, c.NonVoter, c.Recovering = newFounding(), &vote, false
	})
}

func (f *nodeFile) change(edit func(*nodeContents)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	contents := f.contents
	edit(&contents)
	if reflect.DeepEqual(contents, f.contents) {
		return nil
	}
	return f.writeLocked(contents)
}

// propose is the first founder's promise. It draws the id; asked again for the same set, it
// keeps it. It returns an empty id if an earlier promise stands in the way.
func (f *nodeFile) propose(with founders) (id string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.contents.Founders != nil && slices.Equal(f.contents.Founders, with):
		return f.contents.Founding, nil
	case f.contents.Founders != nil || f.contents.Founding != "":
		return "", nil
	}
	contents := f.contents
	contents.Founders, contents.Founding = with, newFounding()
	return contents.Founding, f.writeLocked(contents)
}

// agree promises the first founder to found a cluster with these and no others under this
// id, durably: after a restart with no log, the promise tells this node from one that lost
// its log. It says whether the promise holds. Asked again with another id, it follows: the
// first founder has lost its own promise, and nobody else founds with it.
func (f *nodeFile) agree(with founders, id string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.contents.Founders == nil && f.contents.Founding != "":
		return false, nil
	case f.contents.Founders != nil && !slices.Equal(f.contents.Founders, with):
		return false, nil
	case f.contents.Founders != nil && f.contents.Founding == id:
		return true, nil
	}
	contents := f.contents
	contents.Founders, contents.Founding = with, id
	return true, f.writeLocked(contents)
}

// release takes the promise back, if it is this one.
func (f *nodeFile) release(from founders) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.contents.Founders == nil || !slices.Equal(f.contents.Founders, from) {
		return nil
	}
	contents := f.contents
	contents.Founders, contents.Founding = nil, ""
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
