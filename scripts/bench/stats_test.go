package main

import (
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	ten := make([]time.Duration, 10)
	for i := range ten {
		ten[i] = time.Duration(i + 1)
	}
	for _, c := range []struct {
		sorted []time.Duration
		p      float64
		want   time.Duration
	}{
		{nil, 50, 0}, {ten[:1], 99, 1}, {ten, 0, 1}, {ten, 10, 1}, {ten, 50, 5}, {ten, 51, 6}, {ten, 99, 10}, {ten, 100, 10},
	} {
		if got := percentile(c.sorted, c.p); got != c.want {
			t.Errorf("p%g of %v is %d, not %d", c.p, c.sorted, got, c.want)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{7}, 7}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v is %g, not %g", c.values, got, c.want)
		}
	}
}
