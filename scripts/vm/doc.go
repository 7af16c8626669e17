// Package vm makes machines out of processes: each has its own network namespace, address
// and directory, and if wanted a file system of a given size. It knows machines, networks,
// disks and processes, not what runs on them.
//
// The network between the machines is a switch in this process (Switch): each machine has a
// TUN device, the switch reads what it sends and passes it on by destination address, after
// the rules for that pair of machines. So it needs no netfilter and no netem in the kernel,
// only root and /dev/net/tun, and a rule changes from one packet to the next.
//
// Nothing is left behind, even when this process is killed: namespaces have no names, they
// and the mounts in them end with the thread that holds them, loop devices with their
// mounts, and machines' processes get SIGKILL when that thread ends. Only files stay.
//
// Without root, or on a system that is not Linux, Open says why and makes machines that
// share the loopback device, with addresses of 127.0.0.0/8 and without rules.
package vm
