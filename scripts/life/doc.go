// Package life is a test: it takes a cluster through its whole life as an operator would, with
// scripts/install.sh, the files that it installs and the commands of kontiki and kubectl. Three
// machines form a cluster, it grows to five, loses one and gets another in its place, is
// upgraded under load, backed up, destroyed, and restored on new machines.
//
// The machines are those of scripts/vm, each with a file tree of its own. The test plays their
// systemd: it starts what the installed unit says, with the installed settings, and wants READY=1.
package life
