// Package audit writes down who asked what: upstream's audit, its policy file
// and its log, in upstream's format.
package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"gopkg.in/natefinch/lumberjack.v2"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	upstream "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	auditlog "k8s.io/apiserver/plugin/pkg/audit/log"
)

// Options are kube-apiserver's flags of the same names.
type Options struct {
	Path       string // of the log; "-" is stdout, empty is no audit
	PolicyFile string
	MaxAge     int // days
	MaxBackup  int // files
	MaxSize    int // megabytes, of a file
}

// AddFlags makes the flags that set o.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Path, "audit-log-path", o.Path, "file for the audit log, - for stdout (default: no audit log)")
	flags.StringVar(&o.PolicyFile, "audit-policy-file", o.PolicyFile, "audit policy, as kube-apiserver reads it; required with --audit-log-path")
	flags.IntVar(&o.MaxAge, "audit-log-maxage", o.MaxAge, "days for which old audit log files are kept (0: for ever)")
	flags.IntVar(&o.MaxBackup, "audit-log-maxbackup", o.MaxBackup, "how many old audit log files are kept (0: all)")
	flags.IntVar(&o.MaxSize, "audit-log-maxsize", o.MaxSize, "megabytes after which an audit log file is followed by a new one (0: 100)")
}

// Log is where events go and which they are. A nil one is no audit.
type Log struct {
	Sink   upstream.Backend
	Policy upstream.PolicyRuleEvaluator
	out    io.Closer
}

// Open reads the policy and opens the log. It returns nil if none is wanted.
func Open(o Options) (*Log, error) {
	switch {
	case o.Path == "" && o.PolicyFile == "":
		return nil, nil
	case o.Path == "" || o.PolicyFile == "":
		return nil, errors.New("--audit-log-path and --audit-policy-file go together: one says where, the other what")
	}
	rules, err := policy.LoadPolicyFromFile(o.PolicyFile)
	if err != nil {
		return nil, fmt.Errorf("--audit-policy-file: %w", err)
	}
	out, err := open(o)
	if err != nil {
		return nil, fmt.Errorf("--audit-log-path: %w", err)
	}
	return &Log{
		Sink:   auditlog.NewBackend(out, auditlog.FormatJson, auditv1.SchemeGroupVersion),
		Policy: policy.NewPolicyRuleEvaluator(rules),
		out:    out,
	}, nil
}

func open(o Options) (io.WriteCloser, error) {
	if o.Path == "-" {
		return stdout{}, nil
	}
	if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
		return nil, err
	}
	// Tried once here: later it could only be said in the log.
	file, err := os.OpenFile(o.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	return &lumberjack.Logger{Filename: o.Path, MaxAge: o.MaxAge, MaxBackups: o.MaxBackup, MaxSize: o.MaxSize}, nil
}

// Close closes the file. A nil log may be closed.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	return l.out.Close()
}

// stdout is not ours to close.
type stdout struct{}

// Write implements io.Writer.
func (stdout) Write(b []byte) (int, error) { return os.Stdout.Write(b) }

// Close implements io.Closer.
func (stdout) Close() error { return nil }
