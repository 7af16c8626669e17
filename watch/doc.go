// Package watch fans the events of this node's state machine out to many
// readers. It knows order; it knows neither nodes nor Kubernetes.
//
// # Story
//
// A [Hub] observes the FSM. It sorts events by topic, the first two segments of
// the key ("/core/pods/"), and keeps a window of recent ones for each topic. A
// [Cursor] is one reader's place in a topic. It starts after an index and pulls
// what follows: all of it, in index order, each event once. A reader that falls
// out of the window gets [ErrExpired], never a gap, and has to list again.
//
// Because history is the replicated log, the same indexes mean the same events
// on every node: a reader may go on with another node's hub.
//
// # Shape
//
//	topic     head                                        tail
//	          link -> batch -> link -> batch -> link -> batch -> link
//	           ^                ^                                 ^
//	       cursor at the     cursor half                     cursor that has
//	       floor             way                             seen everything
//
// A batch holds the events of one topic from one applied batch. A link is a
// place between batches: what follows it is not there yet, a batch, or gone.
// One channel per link is closed when something follows, and wakes everybody
// who waits there. So publishing allocates one batch and one link a topic,
// however many cursors there are, and there is no buffer or goroutine a reader.
//
// Evicting a batch marks the link before it as gone. A cursor that stands there
// has missed something and learns it at its next step; it pins nothing, as
// nothing hangs on its link any more. Cursors further on notice nothing.
//
// # Selecting
//
// A [Cursor] is woken by every event of its topic. A thousand kubelets that watch the
// pods of one node each want one event in a thousand, so [Hub.Select] sorts a topic's
// events by values that its caller computes, once an event, and wakes only readers of
// one of these. What waits for a [Selection] is bounded; one that is slower reads the
// window.
//
// # Goroutines
//
// There is one for each topic from which somebody selects. OnApply and OnRestore
// run on the FSM goroutine, the only writer. They share one mutex per topic with Subscribe and Since, held
// for a binary search at most. A cursor's reads take no lock. A Cursor belongs
// to one goroutine; everything on a Hub may be called from any.
package watch
