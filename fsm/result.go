package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Code is the outcome of a command. Values are wire format: append only.
type Code uint8

// The outcomes. Only OK changed the state.
const (
	OK        Code = 0
	Exists    Code = 1 // create: the key exists
	NotFound  Code = 2 // update, delete: the key does not exist; restore: no whole and sound snapshot is staged
	Conflict  Code = 3 // update, delete: the key is not at the expected index
	Forgotten Code = 4 // the command is so old that it may have been applied and forgotten
)

var codeNames = [...]string{"ok", "exists", "not found", "conflict", "forgotten"}

// String returns the words for c that logs and metrics use.
func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("code %d", uint8(c))
}

// Result is what applying a command returns, on every node alike.
type Result struct {
	Code Code
	// Index is that of the log entry that carried the command. When a retry
	// arrives after the first was applied, both get the first one's index.
	Index uint64
	// Current is the entry that the command met: with Exists and Conflict the
	// one that won, with a successful Update or Delete the one replaced, else
	// nil. The answer to a retry has none.
	Current *Entry
}

// resultVersion leads every encoded result.
const resultVersion = 1

// Append encodes r behind dst: version, code, index, and, after a byte that
// says whether there is one, the current entry.
func (r Result) Append(dst []byte) []byte {
	dst = append(dst, resultVersion, byte(r.Code))
	dst = binary.AppendUvarint(dst, r.Index)
	if r.Current == nil {
		return append(dst, 0)
	}
	return appendEntry(append(dst, 1), r.Current)
}

// DecodeResult is the strict inverse of Append. The Value of Current aliases b.
func DecodeResult(b []byte) (Result, error) {
	r := reader{b: b}
	if v := r.byte(); r.err == nil && v != resultVersion {
		return Result{}, fmt.Errorf("result: version %d, this program knows %d", v, resultVersion)
	}
	res := Result{Code: Code(r.byte()), Index: r.uvarint()}
	if int(res.Code) >= len(codeNames) {
		r.fail(fmt.Errorf("unknown code %d", uint8(res.Code)))
	}
	switch r.byte() {
	case 0:
	case 1:
		res.Current = readEntry(&r)
	default:
		r.fail(errors.New("current entry neither there nor not"))
	}
	if err := r.end(); err != nil {
		return Result{}, fmt.Errorf("result: %w", err)
	}
	return res, nil
}
