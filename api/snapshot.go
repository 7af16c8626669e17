package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kontiki/api/storage"
	"kontiki/cluster"
)

// SnapshotPath gives a backup of the cluster to a GET, and takes one to restore
// from a POST. With ?stale=true a GET is of what this node has, fresh or not:
// it works without a quorum.
const SnapshotPath = ownPrefix + "/snapshot"

// backupType is the media type of a backup.
const backupType = "application/vnd.kontiki.backup"

// freshWait is how long a backup waits for a quorum, as any consistent read.
const freshWait = 10 * time.Second

func (s *Server) saveSnapshot(w http.ResponseWriter, r *http.Request) (any, error) {
	if r.URL.Query().Get("stale") != "true" {
		ctx, cancel := context.WithTimeout(r.Context(), freshWait)
		defer cancel()
		if err := s.Node.Ready(ctx); err != nil {
			return nil, storage.WriteError(err)
		}
	}
	backup := s.Node.Backup()
	w.Header().Set("Content-Type", backupType)
	if err := backup.Write(untilDone{w, r.Context()}); err != nil {
		// The status is sent. Who reads it misses the end, and notices.
		s.Logger.Warn("a backup was not sent to its end", "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil, nil
}

func (s *Server) restoreSnapshot(_ http.ResponseWriter, r *http.Request) (any, error) {
	restored, err := s.Node.Restore(r.Context(), r.Body)
	switch {
	case err == nil:
		return restored, nil
	case errors.Is(err, cluster.ErrBadBackup):
		return nil, apierrors.NewBadRequest(err.Error())
	case errors.Is(err, cluster.ErrRestoreLost):
		return nil, apierrors.NewServiceUnavailable(err.Error())
	case errors.Is(err, cluster.ErrUnknownOutcome):
		return nil, apierrors.NewTimeoutError("the restore was proposed, but whether it took effect is not known", 0)
	case errors.Is(err, cluster.ErrBehind):
		return nil, apierrors.NewTimeoutError("the restore took effect, but this node did not see it in time", 0)
	}
	return nil, storage.WriteError(err)
}

// untilDone writes until a context ends: that of a server which stops, too.
type untilDone struct {
	io.Writer
	ctx context.Context
}

// Write implements io.Writer.
func (u untilDone) Write(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.Writer.Write(p)
}
