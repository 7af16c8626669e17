package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	terminal "golang.org/x/term"
)

// progressPace is how often a progress line is drawn.
const progressPace = 200 * time.Millisecond

// progress draws a line on a terminal while bytes go by, and nothing elsewhere.
type progress struct {
	out   io.Writer // nil: not a terminal
	what  string
	total int64 // 0: not known
	start time.Time
	done  atomic.Int64
	drawn time.Time
}

func newProgress(out io.Writer, what string, total int64) *progress {
	p := &progress{what: what, total: total, start: time.Now()}
	if file, ok := out.(*os.File); ok && terminal.IsTerminal(int(file.Fd())) {
		p.out = out
	}
	return p
}

// reader counts what is read from r.
func (p *progress) reader(r io.Reader) io.Reader {
	return readerFunc(func(b []byte) (int, error) {
		n, err := r.Read(b)
		p.done.Add(int64(n))
		if now := time.Now(); now.Sub(p.drawn) >= progressPace {
			p.drawn = now
			p.draw()
		}
		return n, err
	})
}

func (p *progress) draw() {
	if p.out == nil {
		return
	}
	done, line := p.done.Load(), ""
	if p.total > 0 {
		const width = 30
		filled := int(min(done, p.total) * width / p.total)
		for i := range width {
			if i < filled {
				line += "#"
			} else {
				line += "."
			}
		}
		line = fmt.Sprintf("[%s] %d%% ", line, min(done, p.total)*100/p.total)
	}
	rate := float64(done) / max(time.Since(p.start).Seconds(), 0.001)
	fmt.Fprintf(p.out, "\r\x1b[K%s%s %s, %s/s", line, p.what, byteSize(done), byteSize(int64(rate)))
	if p.total > 0 && done >= p.total {
		fmt.Fprint(p.out, "; the cluster works on it")
	}
}

// end leaves the last line on the terminal.
func (p *progress) end() {
	if p.out != nil {
		p.draw()
		fmt.Fprintln(p.out)
	}
}

// byteSize is a number of bytes for people.
func byteSize(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d B", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

type readerFunc func([]byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// countingReader knows how much was read.
type countingReader struct {
	io.Reader
	n int64
}

// Read implements io.Reader.
func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	return n, err
}
