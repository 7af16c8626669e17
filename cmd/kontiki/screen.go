package main

import (
	"bytes"
	"io"
	"os"
	"unicode/utf8"

	terminal "golang.org/x/term"
)

// The escapes of a redraw. They move and clear and change no mode, so that there
// is nothing to restore, however the process ends.
const (
	toTop        = "\x1b[H"
	clearScreen  = "\x1b[2J"
	clearToRight = "\x1b[K"
	clearBelow   = "\x1b[J"
)

// screen shows pictures: on a terminal each in the place of the one before, cut
// to its size; elsewhere one after the other.
type screen struct {
	w     io.Writer
	size  func() (width, height int, ok bool) // not ok: no terminal
	drawn bool
}

func newScreen(w io.Writer) *screen {
	return &screen{w: w, size: func() (int, int, bool) {
		file, ok := w.(*os.File)
		if !ok {
			return 0, 0, false
		}
		width, height, err := terminal.GetSize(int(file.Fd()))
		return width, height, err == nil && height > 1
	}}
}

// show writes what draw draws, in one piece.
func (s *screen) show(draw func(io.Writer) error) error {
	var picture bytes.Buffer
	if err := draw(&picture); err != nil {
		return err
	}
	width, height, ok := s.size()
	if !ok {
		_, err := s.w.Write(picture.Bytes())
		return err
	}
	var out bytes.Buffer
	if !s.drawn {
		out.WriteString(clearScreen)
		s.drawn = true
	}
	out.WriteString(toTop)
	lines := bytes.Split(bytes.TrimRight(picture.Bytes(), "\n"), []byte("\n"))
	for _, line := range lines[:min(len(lines), height-1)] { // the last line is the cursor's
		out.Write(cut(line, width))
		out.WriteString(clearToRight + "\r\n")
	}
	out.WriteString(clearBelow)
	_, err := s.w.Write(out.Bytes())
	return err
}

// cut returns what of a line fits into so many columns.
func cut(line []byte, width int) []byte {
	end := 0
	for column := 0; column < width && end < len(line); column++ {
		_, size := utf8.DecodeRune(line[end:])
		end += size
	}
	return line[:end]
}
