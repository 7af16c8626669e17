package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/api"
	"kontiki/cluster"
	"kontiki/cluster/pki"
)

const (
	// joinTimeout bounds one question to one member, joinPause is between rounds,
	// and joinTell between log lines while no member answers.
	joinTimeout = 10 * time.Second
	joinPause   = time.Second
	joinTell    = 10 * time.Second

	maxJoinAnswer = 1 << 20
)

// errRefused is a member's answer that asking again would not change.
var errRefused = errors.New("cannot join")

// join has a member of --join let this node in, if that is still to be done, and
// keeps what it says: the cluster's CA and gossip key, and where the others are.
// It asks until a member answers; what a member refuses is an error at once.
func join(ctx context.Context, cfg Config, log hclog.Logger) error {
	known, err := cluster.KnownPeers(cfg.DataDir)
	if err != nil {
		return err
	}
	haveCluster := pki.Exists(cfg.PKIDir)
	switch {
	case len(cfg.Join) > 0:
	case haveCluster:
		return nil
	case len(known) > 0:
		return fmt.Errorf("%s knows other nodes, but %s is missing: start with --join and --token", cfg.DataDir, cfg.PKIDir)
	case cfg.Token != "" || cfg.TokenFile != "":
		return fmt.Errorf("a join token is given, but no --join with the API address of a member")
	default:
		return nil
	}
	token, err := joinToken(cfg, haveCluster)
	if err != nil {
		return err
	}
	_, err = os.Stat(filepath.Join(cfg.DataDir, "node.json"))
	if haveCluster && (len(known) > 0 || err == nil) {
		return nil
	}
	return askMembers(ctx, cfg, token, log)
}

// joinToken reads the token. Whoever has the cluster's directory needs none, but
// one that is given must be of that cluster.
func joinToken(cfg Config, haveCluster bool) (text string, err error) {
	if text = cfg.Token; text == "" && cfg.TokenFile != "" {
		data, err := os.ReadFile(cfg.TokenFile)
		if err != nil && !haveCluster {
			return "", fmt.Errorf("cannot read --token-file: %w", err)
		}
		text = string(bytes.TrimSpace(data))
	}
	if text == "" && !haveCluster {
		return "", fmt.Errorf("--join needs a --token: make one with `kontiki token create` on a member")
	}
	if !haveCluster {
		return text, nil
	}
	root, err := pki.Load(cfg.PKIDir)
	if err != nil {
		return "", err
	}
	if token, err := pki.ParseToken(text); text != "" && err == nil && !token.Names(root) {
		return "", fmt.Errorf("%w: %s is of cluster %s: use another --data-dir, or leave out --join and --token", pki.ErrTokenForeign, cfg.PKIDir, root.ID())
	}
	text, _, err = root.NewToken(joinTokenLife)
	return text, err
}

// joinTokenLife is that of a token which a node makes for itself.
const joinTokenLife = time.Hour

func askMembers(ctx context.Context, cfg Config, text string, log hclog.Logger) error {
	token, err := pki.ParseToken(text)
	if err != nil {
		return err
	}
	body, err := json.Marshal(api.JoinRequest{Token: text, Name: cfg.Name, PeerAddr: cfg.PeerAddr, GossipAddr: cfg.GossipAddr})
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: joinTimeout, Transport: &http.Transport{TLSClientConfig: token.TLS(), ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	var told time.Time
	for {
		var last error
		for _, address := range cfg.Join {
			response, err := askMember(ctx, client, address, body)
			if err == nil {
				log.Info("joining", "through", address, "peers", response.Peers)
				return adopt(cfg, token, response)
			}
			if errors.Is(err, errRefused) || ctx.Err() != nil {
				return err
			}
			last = err
		}
		if time.Since(told) >= joinTell {
			told = time.Now()
			log.Warn("no member to join answers yet", "tried", cfg.Join, "error", last)
		}
		select {
		case <-time.After(joinPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// askMember asks once. Its error wraps errRefused if asking again, or another
// member, would not help.
func askMember(ctx context.Context, client *http.Client, address string, body []byte) (response api.JoinResponse, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+api.JoinPath, bytes.NewReader(body))
	if err != nil {
		return response, fmt.Errorf("%w: --join %q is not host:port", errRefused, address)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if errors.Is(err, pki.ErrTokenForeign) {
		return response, fmt.Errorf("%w %s: %w", errRefused, address, pki.ErrTokenForeign)
	}
	if err != nil {
		return response, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxJoinAnswer))
	if err != nil {
		return response, err
	}
	switch {
	case answer.StatusCode == http.StatusOK:
		return response, json.Unmarshal(data, &response)
	case answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests:
		return response, fmt.Errorf("%s answers %s", address, answer.Status)
	}
	var status metav1.Status
	if json.Unmarshal(data, &status) != nil || status.Message == "" {
		return response, fmt.Errorf("%w %s: it answers %s: is it a kontiki server of this version?", errRefused, address, answer.Status)
	}
	return response, fmt.Errorf("%w %s: %s", errRefused, address, status.Message)
}

// adopt keeps what a member said. A crash between the two steps is repaired by
// the next start with the same flags; without them it is refused.
func adopt(cfg Config, token pki.Token, response api.JoinResponse) error {
	if len(response.Peers) == 0 {
		return fmt.Errorf("%w: the member knows no gossip address, not even its own", errRefused)
	}
	if err := cluster.RememberPeers(cfg.DataDir, response.Peers); err != nil {
		return err
	}
	if _, err := pki.Adopt(cfg.PKIDir, response.Cluster, token); err != nil {
		return errors.Join(err, cluster.ForgetPeers(cfg.DataDir))
	}
	return nil
}
