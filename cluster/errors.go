package cluster

import "errors"

// What a caller of Propose and ReadIndex has to tell apart is whether the command may have
// happened. Test with errors.Is: each may be wrapped with its cause.
var (
	// ErrNoLeader: no leader took the command in time. It was surely not proposed.
	ErrNoLeader = errors.New("no leader")

	// ErrUnknownOutcome: the command was handed to a leader and its result did not come
	// back in time. It may have happened, may happen yet, or never.
	ErrUnknownOutcome = errors.New("outcome unknown")

	// ErrTooLarge: the command is larger than Config.MaxCommandBytes. It was not proposed.
	ErrTooLarge = errors.New("command too large")

	// ErrInvalid: the command is malformed, which is a bug of the caller. It was not proposed.
	ErrInvalid = errors.New("invalid command")

	// ErrBehind: this node has not applied what it must have applied to answer. From
	// Propose it comes with the Result: the command is committed, here it is not yet seen.
	ErrBehind = errors.New("this node is behind the leader")

	// ErrNoQuorum: the leader could not confirm in time that it still leads.
	ErrNoQuorum = errors.New("no quorum")

	// ErrDiskFull: the disk of this node, or of the leader, is nearly full, and the command is
	// not of those that still pass (see DiskLevel). It was not proposed.
	ErrDiskFull = errors.New("disk is nearly full")

	// ErrClosed: this node is shutting down. The command was surely not proposed.
	ErrClosed = errors.New("node is closed")
)

// What is wrong with a restore. Nothing was changed.
var (
	// ErrBadBackup: the file is not a whole and sound backup that this program can read.
	ErrBadBackup = errors.New("not a usable backup")

	// ErrRestoreLost: what had been staged was gone before it could be put in place.
	ErrRestoreLost = errors.New("the restore took too long or was disturbed, try again")
)

// ErrOtherFounding: the other node belongs to another cluster, which was founded under the
// same certificate authority.
var ErrOtherFounding = errors.New("node belongs to a cluster that was founded on its own")

// Start errors. Each is wrapped in one line that says what to do.
var (
	// ErrInUse: another process has the data directory open.
	ErrInUse = errors.New("data directory is in use by another process")

	// ErrForeignData: the data directory belongs to another cluster or another node.
	ErrForeignData = errors.New("data directory belongs to another node")

	// ErrVersion: a peer is of a release that speaks another version of the wire protocol.
	ErrVersion = errors.New("peer protocol versions differ")

	// ErrNewerData: a later release wrote the data directory.
	ErrNewerData = errors.New("data directory has a newer format")

	// ErrHalfRecovered: a recovery of this node was interrupted and may have replaced its log.
	ErrHalfRecovered = errors.New("a recovery was interrupted here")

	// ErrCorrupt: the log in the data directory, or all its snapshots, cannot be read.
	ErrCorrupt = errors.New("data is damaged")

	// ErrListen: an address cannot be listened on.
	ErrListen = errors.New("cannot listen")

	// ErrConfig: the configuration makes no sense.
	ErrConfig = errors.New("bad configuration")
)

// Reasons for Node.Fatal. The process has to exit; a restart is the cure.
var (
	// ErrDisk: a write to the log failed or hung. What reached the disk is not known, so
	// nothing more is written to it.
	ErrDisk = errors.New("log write failed")

	// ErrStuckTransfer: a leadership transfer never ended (hashicorp/raft#696), and this
	// leader refuses every command.
	ErrStuckTransfer = errors.New("leadership transfer is stuck")

	// ErrStuckInstall: snapshots are installed again and again and the log after them
	// never fits (hashicorp/raft#697).
	ErrStuckInstall = errors.New("snapshot install repeats without progress")

	// ErrWipedVoter: the cluster counts this node as a voter, and its data is gone.
	// It could vote twice in one term, so it must not come back under the same name.
	ErrWipedVoter = errors.New("data of a voting member is gone")

	// ErrLostLog: node.json says that this node was part of a cluster, and its log is gone.
	ErrLostLog = errors.New("log is gone")

	// ErrRemoved: raft stopped, because the node was removed from the cluster.
	ErrRemoved = errors.New("node was removed from the cluster")
)
