package main

import (
	"bufio"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// setting is a line of the sample configuration, in force or commented out.
var setting = regexp.MustCompile(`^#?(KONTIKI_[A-Z_]+)=(.*)$`)

// readSample returns the sample's settings, commented out or not. A line that is
// neither setting nor comment fails the test.
func readSample(t *testing.T) map[string]string {
	t.Helper()
	file, err := os.Open("../../scripts/install/kontiki.env")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	settings := make(map[string]string)
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := lines.Text()
		if match := setting.FindStringSubmatch(line); match != nil {
			settings[match[1]] = match[2]
		} else if line != "" && !strings.HasPrefix(line, "# ") {
			t.Errorf("neither a setting nor a comment: %q", line)
		}
	}
	return settings
}

// TestSampleConfiguration compares the sample with the flags: it has each of
// them, shows its default, and nothing else.
func TestSampleConfiguration(t *testing.T) {
	settings := readSample(t)
	cfg := DefaultConfig()
	flags := pflag.NewFlagSet("server", pflag.ContinueOnError)
	cfg.AddFlags(flags)
	flags.VisitAll(func(flag *pflag.Flag) {
		name := "KONTIKI_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		value, ok := settings[name]
		delete(settings, name)
		switch {
		case !ok:
			t.Errorf("%s is missing", name)
		case flag.Name == "data-dir": // has no default
		case value != strings.Trim(flag.DefValue, "[]"):
			t.Errorf("%s is %q, the default is %q", name, value, flag.DefValue)
		default:
			t.Setenv(name, value)
		}
	})
	for name := range settings {
		t.Errorf("%s is no flag of the server", name)
	}
	t.Setenv("KONTIKI_DATA_DIR", t.TempDir())
	if err := flagsFromEnv(flags); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Complete(); err != nil {
		t.Error(err)
	}
}
