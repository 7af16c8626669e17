package routes

import (
	"net/http/httptest"
	"slices"
	"testing"
)

// pieces counts what is written and how.
type pieces struct {
	*httptest.ResponseRecorder
	sizes []int
}

func (p *pieces) Write(b []byte) (int, error) {
	p.sizes = append(p.sizes, len(b))
	return p.ResponseRecorder.Write(b)
}

// TestGathered: an event and its length are one piece, as are events that follow each other; what is
// not flushed does not grow without end.
func TestGathered(t *testing.T) {
	p := &pieces{ResponseRecorder: httptest.NewRecorder()}
	g := &gathered{ResponseWriter: p}
	write := func(sizes ...int) {
		t.Helper()
		for _, size := range sizes {
			if n, err := g.Write(make([]byte, size)); n != size || err != nil {
				t.Fatal(n, err)
			}
		}
	}
	g.Flush()
	write(4, 5000)
	g.Flush()
	write(4, 100, 4, 100)
	g.Flush()
	write(gatherSize-1, 1, 7)
	if err := g.send(); err != nil {
		t.Fatal(err)
	}
	if want := []int{5004, 208, gatherSize, 7}; !slices.Equal(p.sizes, want) || !p.Flushed {
		t.Errorf("written in pieces of %v, want %v", p.sizes, want)
	}
}
