package site

import (
	"fmt"
	"path/filepath"
	"strings"

	"kontiki/scripts/vm"
)

// command is how a server is started: the same for its first boot and every other.
func (n *Node) command() vm.Command {
	s, m := n.site, n.Machine
	var join []string
	for _, other := range s.Nodes {
		if other != n {
			join = append(join, other.Machine.Address(GossipPort))
		}
	}
	args := []string{
		"server", "--name=" + n.Name, "--data-dir=" + m.Inside("data"), "--pki-dir=" + filepath.Join(s.cfg.Dir, "pki"),
		"--api-addr=" + m.Address(APIPort), "--peer-addr=" + m.Address(PeerPort), "--gossip-addr=" + m.Address(GossipPort),
		fmt.Sprintf("--bootstrap-expect=%d", s.cfg.Nodes),
	}
	if len(join) > 0 {
		args = append(args, "--peers="+strings.Join(join, ","))
	}
	return vm.Command{
		Path: s.cfg.Binary, Args: args, Log: n.LogFile,
		Env: []string{
			"KONTIKI_FAULTS=" + n.socket,
			"KONTIKI_FAULTS_TUNING=" + s.cfg.Tuning,
			"KONTIKI_FAULTS_FIRST=" + n.first,
		},
	}
}
