package main

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// recordFile is where --record writes and the test reads, seen from the checkout.
// It is zipped JSON: as plain text it would be too much for a repository.
const recordFile = "scripts/contract/testdata/record.json.gz"

// A record is what the peer said to the corpus once, normalized, so that
// Kontiki can be held against it where there is no peer.
type record struct {
	About     string
	Peer      string // its release
	Sequences []pastSequence
	Texts     []string // of the answers, each one once: most are like another
}

type pastSequence struct {
	Name    string
	Steps   string // their fingerprint: an answer belongs to one question
	Answers []pastAnswer
}

// A pastAnswer is the peer's part of an outcome.
type pastAnswer struct {
	Text   int // its place in the record's texts
	Frames int `json:",omitempty"` // of a watch: how many came before the next step, or until it was closed
}

// fingerprint changes when anything in a sequence does.
func fingerprint(q sequence) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", q.steps))
	return fmt.Sprintf("%x", sum[:6])
}

// newRecord keeps what the first server said. Outcomes are by sequence.
func newRecord(release string, all []sequence, outcomes [][]outcome) *record {
	r := &record{Peer: release, About: "normalized answers of kube-apiserver " + release +
		" to the corpus of scripts/contract; go run ./scripts/contract --record writes them anew"}
	places := map[string]int{}
	for i, q := range all {
		past := pastSequence{Name: q.name, Steps: fingerprint(q)}
		for _, o := range outcomes[i] {
			place, known := places[o.answers[0]]
			if !known {
				place = len(r.Texts)
				places[o.answers[0]], r.Texts = place, append(r.Texts, o.answers[0])
			}
			past.Answers = append(past.Answers, pastAnswer{Text: place, Frames: o.frames})
		}
		r.Sequences = append(r.Sequences, past)
	}
	return r
}

// of finds the peer's answers to a sequence.
func (r *record) of(q sequence) ([]pastAnswer, error) {
	for _, past := range r.Sequences {
		if past.Name == q.name && past.Steps == fingerprint(q) {
			return past.Answers, nil
		}
	}
	return nil, errors.New("not recorded, or changed since: go run ./scripts/contract --record")
}

// answers counts what is recorded.
func (r *record) answers() (n int) {
	for _, past := range r.Sequences {
		n += len(past.Answers)
	}
	return n
}

// changes are where this record says something else than an older one.
func (r *record) changes(older *record) (found []difference) {
	before := map[string]pastSequence{}
	for _, past := range older.Sequences {
		before[past.Name+past.Steps] = past
	}
	for _, past := range r.Sequences {
		old := before[past.Name+past.Steps]
		for i, a := range past.Answers[:min(len(past.Answers), len(old.Answers))] {
			if was, is := older.Texts[old.Answers[i].Text], r.Texts[a.Text]; was != is {
				found = append(found, difference{sequence: past.Name, number: i, node: "the peer", peer: was, kontiki: is})
			}
		}
	}
	return found
}

func (r *record) save(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	zipped, _ := gzip.NewWriterLevel(file, gzip.BestCompression)
	return errors.Join(json.NewEncoder(zipped).Encode(r), zipped.Close(), file.Close())
}

func loadRecord(path string) (*record, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var r record
	if err := json.NewDecoder(unzipped).Decode(&r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &r, nil
}

// release is what a server says it is, without what a build adds.
func (s *server) release(ctx context.Context) (string, error) {
	got, err := s.send(ctx, get("/version"))
	if err != nil {
		return "", err
	}
	var version struct{ GitVersion string }
	err = json.Unmarshal(got.body, &version)
	return version.GitVersion, err
}
