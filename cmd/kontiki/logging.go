package main

import (
	"flag"

	"github.com/hashicorp/go-hclog"
	"k8s.io/klog/v2"
)

// quietLibraries sends what Kubernetes' libraries log through klog into our
// log, below the level of our own lines. Without the threshold klog would write
// errors to stderr as well, and without one_output each of them three times.
func quietLibraries(log hclog.Logger) {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	_ = flags.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL", "-one_output"})
	klog.SetOutput(log.Named("kubernetes").StandardWriter(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}))
}
