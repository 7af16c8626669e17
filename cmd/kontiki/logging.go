package main

import (
	"flag"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/hashicorp/go-hclog"
	"k8s.io/klog/v2"
)

// The values of --log-format.
const (
	logText = "text"
	logJSON = "json"
)

// newLogger makes the logger that everything in a server logs to.
func newLogger(cfg Config, to io.Writer) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Name: "kontiki", Level: hclog.LevelFromString(cfg.LogLevel), Output: to, JSONFormat: cfg.LogFormat == logJSON,
	})
}

func checkLogging(cfg Config) error {
	if hclog.LevelFromString(cfg.LogLevel) == hclog.NoLevel {
		return fmt.Errorf("--log-level %q: want trace, debug, info, warn or error", cfg.LogLevel)
	}
	if cfg.LogFormat != logText && cfg.LogFormat != logJSON {
		return fmt.Errorf("--log-format %q: want text or json", cfg.LogFormat)
	}
	return nil
}

// bridgeLibraries sends what Kubernetes' libraries log through klog into our
// log. The threshold keeps what does not pass through a logger off stderr.
func bridgeLibraries(log hclog.Logger) {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	_ = flags.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL", "-one_output"})
	klog.SetOutput(log.Named("kubernetes").StandardWriter(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}))
	klog.SetLoggerWithOptions(logr.New(newSink(log.Named("kubernetes"))), klog.ContextualLogger(true))
}

// errorPause is the least time between two errors of the libraries that are
// shown as warnings. They log one for each request with wrong credentials, and
// for much else that is a client's doing.
const errorPause = 10 * time.Second

// sink makes a logr of an hclog. What the libraries find worth telling is of no
// interest to operators: information is shown from debug on, what they say only
// if asked to be verbose, from trace on. Errors are warnings, now and then.
type sink struct {
	log    hclog.Logger
	errors *pacer
}

var _ logr.LogSink = sink{}

func newSink(log hclog.Logger) sink { return sink{log, &pacer{pause: errorPause, now: time.Now}} }

// Init implements logr.LogSink.
func (sink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (s sink) Enabled(level int) bool {
	if level == 0 {
		return s.log.IsDebug()
	}
	return s.log.IsTrace()
}

// Info implements logr.LogSink.
func (s sink) Info(level int, text string, args ...any) {
	if level == 0 {
		s.log.Debug(text, args...)
		return
	}
	s.log.Trace(text, args...)
}

// Error implements logr.LogSink.
func (s sink) Error(err error, text string, args ...any) {
	if err != nil {
		args = append(args, "error", err)
	}
	if s.errors.passes() {
		s.log.Warn(text, args...)
		return
	}
	s.log.Debug(text, args...)
}

// WithValues implements logr.LogSink.
func (s sink) WithValues(args ...any) logr.LogSink { return sink{s.log.With(args...), s.errors} }

// WithName implements logr.LogSink.
func (s sink) WithName(name string) logr.LogSink { return sink{s.log.Named(name), s.errors} }

// pacer lets one pass in so much time.
type pacer struct {
	pause time.Duration
	now   func() time.Time
	mu    sync.Mutex
	next  time.Time // guarded by mu
}

func (p *pacer) passes() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if now.Before(p.next) {
		return false
	}
	p.next = now.Add(p.pause)
	return true
}
