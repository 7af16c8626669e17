package storage_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets more tests wait at a time than there are CPUs: what takes long
// here is upstream's suite, which waits for timeouts, not for the machine.
func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" || f.Name == "test.fuzz" })
	if !asked {
		flag.Set("test.parallel", "16")
	}
	os.Exit(m.Run())
}
