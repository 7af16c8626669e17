package registry

import (
	"fmt"
	goruntime "runtime"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"
)

// Release is the Kubernetes release whose API is served: that of the
// k8s.io/kubernetes module in go.mod.
const Release = "1.36.3"

// Version answers /version. Clients read the Kubernetes release from it; the
// part behind the plus says who implements it.
func Version(build string) version.Info {
	v := utilversion.MustParse(Release)
	return version.Info{
		Major: fmt.Sprint(v.Major()),
		Minor: fmt.Sprint(v.Minor()),
		// No older release is emulated; upstream promises to be compatible with
		// the one before.
		EmulationMajor:        fmt.Sprint(v.Major()),
		EmulationMinor:        fmt.Sprint(v.Minor()),
		MinCompatibilityMajor: fmt.Sprint(v.Major()),
		MinCompatibilityMinor: fmt.Sprint(v.Minor() - 1),
		GitVersion:            "v" + Release + "+kontiki-" + build,
		GitTreeState:          "clean",
		GoVersion:             goruntime.Version(),
		Compiler:              goruntime.Compiler,
		Platform:              goruntime.GOOS + "/" + goruntime.GOARCH,
	}
}
