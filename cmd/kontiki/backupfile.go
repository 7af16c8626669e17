package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"kontiki/cluster"
	"kontiki/fsm"
	"kontiki/watch"
)

// backupSummary is what inspect shows of a backup.
type backupSummary struct {
	cluster.Stamp
	Objects   int           `json:"objects"`
	Bytes     int64         `json:"bytes"` // of the objects as stored
	FileBytes int64         `json:"fileBytes"`
	Kinds     []kindSummary `json:"kinds"`
}

type kindSummary struct {
	Resource string `json:"resource"`
	Objects  int    `json:"objects"`
	Bytes    int64  `json:"bytes"`
}

// summarize reads a backup to its end and checks it.
func summarize(r io.Reader) (backupSummary, error) {
	var s backupSummary
	var last *kindSummary
	counted := &countingReader{Reader: r}
	stamp, err := cluster.ReadBackup(counted, func(e *fsm.Entry) { // in key order: a kind after the other
		name := resourceName(e.Key)
		if last == nil || last.Resource != name {
			s.Kinds = append(s.Kinds, kindSummary{Resource: name})
			last = &s.Kinds[len(s.Kinds)-1]
		}
		last.Objects++
		last.Bytes += int64(len(e.Value))
		s.Objects++
		s.Bytes += int64(len(e.Value))
	})
	s.Stamp, s.FileBytes = stamp, counted.n
	slices.SortFunc(s.Kinds, func(a, b kindSummary) int { return strings.Compare(a.Resource, b.Resource) })
	return s, err
}

// summarizeFile is summarize for a file, - being standard input if there is one.
func summarizeFile(stdin io.Reader, path string) (backupSummary, error) {
	if path == "-" && stdin != nil {
		return summarize(stdin)
	}
	file, err := os.Open(path)
	if err != nil {
		return backupSummary{}, err
	}
	defer file.Close()
	s, err := summarize(file)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return s, err
}

// resourceName is kubectl's word for the resource of a key: leases.coordination.k8s.io.
func resourceName(key string) string {
	group, resource, _ := strings.Cut(strings.Trim(watch.TopicOf(key), "/"), "/")
	if group == "core" {
		return resource
	}
	return resource + "." + group
}

func (s backupSummary) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(table, "Cluster:\t%s\nNode:\t%s\nVersion:\t%s\nTime:\t%s\n", s.Cluster, s.Node, s.Version, s.Time.Format("2006-01-02 15:04:05 MST"))
	fmt.Fprintf(table, "Index:\t%d\nTerm:\t%d\nSize:\t%s\n", s.Index, s.Term, byteSize(s.FileBytes))
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	fmt.Fprintln(table, "RESOURCE\tOBJECTS\tBYTES")
	for _, k := range s.Kinds {
		fmt.Fprintf(table, "%s\t%d\t%d\n", k.Resource, k.Objects, k.Bytes)
	}
	fmt.Fprintf(table, "total\t%d\t%d\n", s.Objects, s.Bytes)
	return table.Flush()
}

// writeWhole makes a file that appears under its name when write has succeeded
// and all of it is on disk, and not at all otherwise.
func writeWhole(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is there and no file: name another one, or - for standard output", path)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp") // for its owner only
	if err != nil {
		return err
	}
	err = write(file)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
