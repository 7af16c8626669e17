package metrics

import "github.com/prometheus/client_golang/prometheus"

// collector serves the tables.
type collector struct{ *Metrics }

var _ prometheus.Collector = collector{}

func (c collector) families() []family {
	if c.sources.Node == nil {
		return otherFamilies()
	}
	return append(nodeFamilies(), otherFamilies()...)
}

func describe(name, help string, labels []string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, f := range c.families() {
		to <- describe(f.name, f.help, f.labels)
	}
	if c.sources.Node == nil {
		return
	}
	for _, t := range timings() {
		to <- describe(t.name, t.help, nil)
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	for _, f := range c.families() {
		desc := describe(f.name, f.help, f.labels)
		f.read(c.Metrics, func(value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(desc, f.kind, value, labels...)
		})
	}
	if c.sources.Node == nil {
		return
	}
	for _, t := range timings() {
		d := t.of(c.sources.Node.Timings()).Distribution()
		to <- prometheus.MustNewConstHistogram(describe(t.name, t.help, nil), d.Count, d.Seconds, d.Buckets)
	}
}
