// Package cluster makes this process a node of a raft group: it has commands committed from
// any node (Propose), tells from when on a read is not stale (ReadIndex), and sees to who is
// in the group. It knows nodes; it does not know keys, objects or HTTP.
//
// A proposal on the leader goes to raft.Apply; on a follower it is one framed request on a
// long-lived connection to the leader, and never a second hop. Whatever fails on the way is
// repeated with the same ID, until the result is known or the caller's time is over; the
// state machine applies an ID once. What an error means for the command is the point of
// errors.go.
//
// One TCP port, TLS 1.3 with certificates of the cluster's CA on both sides, carries raft
// and the nodes' questions; ALPN tells them apart. Gossip has a port of its own and only
// suggests: who joins, moves and votes is decided by the leader in the raft configuration.
//
// The files, from the outside in:
//
//	node, config, errors, status, close   the node, its settings, its end
//	propose, apply                        a command's way: any node; the leader
//	readindex, verify                     a read's way: shared questions; the leader's proof
//	leader, reconcile, autopilot          what runs while this node leads
//	change, handover, survey              what a person asks of the membership
//	bootstrap, roster, gossip, nodefile, known   how a node finds and enters a cluster
//	founding                              what tells two clusters of one CA apart
//	peerclient, peerserver, wire, frame, message   nodes' questions to each other
//	listener, transport                   the port; raft's messages and the gate before them
//	storage, logstore, seal, compact      what is on disk, and what may go wrong with it
//	disk                                  what is still written when the disk runs full
//	timings, report                       what operators see
//	backup, restore, schedule, recover    the state as a file, and back; a lost majority
//	protocol                              nodes of different releases
//
// # Goroutines
//
// Per node, besides those of raft, memberlist and one blocked accept:
//
//	leadLoop      follows leadership; starts and ends the leader's functions
//	observeLoop   turns raft's observations into Node.changed
//	joinLoop      looks for members: until there is one, then every half minute
//	enterLoop     until the node has data
//	catchUp       until the node has applied what was committed at its start
//	rememberLoop  writes down where the others are
//	reconcileLoop on the leader only
//	one per OnLeader function, on the leader only
//	disk.run      asks for the free space, once a second
//	transport.run passes raft's messages on
//	logStore.run  writes to disk
//	shared.run    while read indexes are being asked for
//	two per connection to a peer, two per connection from one, one per question being
//	answered, one per command in raft
//
// Nothing else polls and nothing else ticks.
package cluster
