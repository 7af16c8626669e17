package storage

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/cluster"
)

// retrySeconds is what clients are told to wait when the cluster has no leader:
// an election takes about that long.
const retrySeconds = 1

// WriteError turns the cluster's word for a failed proposal into an API error.
// Only an outcome that is definite gets a definite error.
func WriteError(err error) error {
	switch {
	case errors.Is(err, cluster.ErrTooLarge):
		return apierrors.NewRequestEntityTooLargeError(err.Error())
	case errors.Is(err, cluster.ErrUnknownOutcome):
		return apierrors.NewTimeoutError("the write was proposed, but whether it took effect is not known; read the object before trying again", retrySeconds)
	case errors.Is(err, cluster.ErrBehind):
		return apierrors.NewTimeoutError("the write took effect, but this node did not see it in time; read the object before trying again", retrySeconds)
	case errors.Is(err, cluster.ErrDiskFull):
		return diskFull(err)
	default:
		return readError(err)
	}
}

// readError turns the cluster's word for a failed read into an API error.
func readError(err error) error {
	switch {
	case errors.Is(err, cluster.ErrNoLeader):
		return Unavailable("the cluster has no leader that this node can reach")
	case errors.Is(err, cluster.ErrNoQuorum):
		return Unavailable("the leader of the cluster cannot reach a majority of the nodes")
	case errors.Is(err, cluster.ErrClosed):
		return Unavailable("this node is stopping; use another one")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return apierrors.NewTimeoutError(fmt.Sprintf("the cluster did not answer in time: %v", err), retrySeconds)
	default:
		return err
	}
}

// Unavailable is a 503 that names when to come back.
func Unavailable(message string) error {
	err := apierrors.NewServiceUnavailable(message)
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retrySeconds}
	return err
}

// CauseDiskFull is the cause that a refused write's Status names.
const CauseDiskFull metav1.CauseType = "DiskFull"

// diskFull is a 503 without a time. With one, clients repeat the request by themselves,
// ten times, before they tell anybody; here somebody has to make room.
func diskFull(cause error) error {
	err := apierrors.NewServiceUnavailable(fmt.Sprintf(
		"the write was refused and did not happen: %v; delete objects, or free space on that disk: writes then pass again", cause))
	err.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: CauseDiskFull, Message: cause.Error()}}}
	return err
}

// Words of upstream's etcd store, which clients and people know.
const (
	listExpired     = "The resourceVersion for the provided list is too old."
	continueExpired = "The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to " +
		"retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - " +
		"objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list."
)

// continueExpiredError carries a token that goes on where the expired one
// stood, from the latest state.
func continueExpiredError(token string) error {
	err := apierrors.NewResourceExpired(continueExpired)
	err.ErrStatus.ListMeta.Continue = token
	return err
}

// watchExpiredError is what a watch says whose version is out of the window.
func watchExpiredError(from, floor uint64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, floor))
}

// statusOf is the Status that an ERROR event carries.
func statusOf(err error) *metav1.Status {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		s := status.Status()
		return &s
	}
	return &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
		Reason: metav1.StatusReasonInternalError, Message: err.Error(),
	}
}
