//go:build !linux

package pages

// ReleaseFile does nothing here: where a file is mapped is not known.
func ReleaseFile(string) {}

// ReleaseProgram does nothing here, for the same reason.
func ReleaseProgram() {}
