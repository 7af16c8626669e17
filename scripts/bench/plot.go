package main

import (
	"fmt"
	"math"
	"strings"
	"text/template"
)

// A panel is one plot over the number of objects.
type panel struct {
	Title string
	Lines []line
}

// A line has a value at each number of objects; those below zero are left out.
type line struct {
	Name   string
	X      []int
	Values []float64
}

// panels are what the scale's points show.
func panels(points []point) []panel {
	of := func(name string, value func(point) float64) line {
		l := line{Name: name}
		for _, p := range points {
			l.X, l.Values = append(l.X, p.Objects), append(l.Values, value(p))
		}
		return l
	}
	return []panel{
		{"memory a pod and node, KiB", []line{of("", func(p point) float64 { return p.PerObject })}},
		{"create, patch: CPU ms", []line{of("create", func(p point) float64 { return p.Create }), of("patch", func(p point) float64 { return p.Patch })}},
		{"get: CPU ms", []line{of("", func(p point) float64 { return p.Get })}},
		{"list: CPU ms per 1,000 pods", []line{of("", func(p point) float64 { return p.List })}},
		{"restart to ready, snapshot: s", []line{of("restart", func(p point) float64 { return p.Restart }),
			of("snapshot", func(p point) float64 { return orNone(p.Snapshots, p.Snapshot) })}},
		{"p99 of creates: ms", []line{of("quiet", func(p point) float64 { return p.QuietP99 }),
			of("in a snapshot", func(p point) float64 { return orNone(p.Snapshots, p.BusyP99) })}},
	}
}

func orNone(count int, value float64) float64 {
	if count == 0 {
		return -1
	}
	return value
}

const (
	panelWidth, panelHeight = 300.0, 200.0
	columns                 = 3
	marginLeft, marginRight = 45.0, 20.0
	marginTop, marginBottom = 40.0, 30.0
)

// A mark is a text or a dot at a place of the drawing.
type mark struct {
	X, Y float64
	Text string
}

type drawnLine struct {
	Color, Path string
	Dots        []mark
	Name        mark
}

type drawnPanel struct {
	Left, Top float64
	Title     string
	Lines     []drawnLine
	Ticks     []mark // of the objects, below
	Levels    []mark // of the values, at the left
}

// plot draws the panels as SVG. The objects' axis is logarithmic, the values' begins at zero.
func plot(panels []panel) string {
	rows := (len(panels) + columns - 1) / columns
	drawing := struct {
		Width, Height, Right, Bottom, Left, Top float64
		Panels                                  []drawnPanel
	}{panelWidth * columns, panelHeight * float64(rows), panelWidth - marginRight, panelHeight - marginBottom, marginLeft, marginTop, nil}
	for i, p := range panels {
		d := p.draw()
		d.Left, d.Top = panelWidth*float64(i%columns), panelHeight*float64(i/columns)
		drawing.Panels = append(drawing.Panels, d)
	}
	var out strings.Builder
	if err := svg.Execute(&out, drawing); err != nil {
		panic(err) // the template fits the data, as a test shows
	}
	return out.String()
}

func (p panel) draw() drawnPanel {
	d := drawnPanel{Title: p.Title}
	most, least, last := 0.0, math.Inf(1), 0.0
	for _, l := range p.Lines {
		for i, v := range l.Values {
			most = max(most, v)
			least, last = min(least, math.Log(float64(l.X[i]))), max(last, math.Log(float64(l.X[i])))
		}
	}
	top := roundUp(most)
	x := func(objects int) float64 {
		share := (math.Log(float64(objects)) - least) / max(last-least, 1e-9)
		return round1(marginLeft + share*(panelWidth-marginLeft-marginRight))
	}
	y := func(v float64) float64 {
		return round1(panelHeight - marginBottom - v/top*(panelHeight-marginTop-marginBottom))
	}
	for i, l := range p.Lines {
		d.Lines = append(d.Lines, l.draw(i, x, y))
	}
	for _, objects := range p.Lines[0].X {
		d.Ticks = append(d.Ticks, mark{x(objects), panelHeight - marginBottom + 14, short(objects)})
	}
	for _, v := range []float64{0, top / 2, top} {
		d.Levels = append(d.Levels, mark{marginLeft - 6, y(v), fmt.Sprintf("%g", v)})
	}
	return d
}

func (l line) draw(i int, x func(int) float64, y func(float64) float64) drawnLine {
	d := drawnLine{Color: []string{"#2458a6", "#c2571a"}[i%2]}
	var path []string
	for j, v := range l.Values {
		if v >= 0 {
			d.Dots = append(d.Dots, mark{X: x(l.X[j]), Y: y(v)})
			path = append(path, fmt.Sprintf("%g,%g", x(l.X[j]), y(v)))
		}
	}
	d.Path = strings.Join(path, " ")
	d.Name = mark{marginLeft + 8 + 90*float64(i), marginTop - 6, l.Name}
	return d
}

// roundUp is the next of 1, 2, 5, 10, 20, ... and 0.1, 0.2 and so on.
func roundUp(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 2, 5} {
		if v <= step*unit {
			return round3(step * unit)
		}
	}
	return round3(10 * unit)
}

func round1(v float64) float64 { return math.Round(v*10) / 10 }
func round3(v float64) float64 { return math.Round(v*1e6) / 1e6 }

// short is 50k for 50000.
func short(objects int) string {
	if objects >= 1000 {
		return fmt.Sprintf("%gk", float64(objects)/1000)
	}
	return fmt.Sprint(objects)
}

var svg = template.Must(template.New("plot").Parse(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {{.Width}} {{.Height}}" font-family="sans-serif" font-size="11" fill="#333">
<rect width="100%" height="100%" fill="white"/>
{{- range .Panels}}
<g transform="translate({{.Left}},{{.Top}})">
<text x="{{$.Left}}" y="16" font-size="12" font-weight="bold">{{.Title}}</text>
<path d="M{{$.Left}},{{$.Top}} V{{$.Bottom}} H{{$.Right}}" fill="none" stroke="#999"/>
{{- range .Levels}}
<text x="{{.X}}" y="{{.Y}}" text-anchor="end" dominant-baseline="middle">{{.Text}}</text>
{{- end}}
{{- range .Ticks}}
<text x="{{.X}}" y="{{.Y}}" text-anchor="middle">{{.Text}}</text>
{{- end}}
{{- range .Lines}}
<polyline points="{{.Path}}" fill="none" stroke="{{.Color}}" stroke-width="2"/>
{{- $color := .Color}}
{{- range .Dots}}
<circle cx="{{.X}}" cy="{{.Y}}" r="3" fill="{{$color}}"/>
{{- end}}
<text x="{{.Name.X}}" y="{{.Name.Y}}" fill="{{.Color}}">{{.Name.Text}}</text>
{{- end}}
</g>
{{- end}}
</svg>
`))
