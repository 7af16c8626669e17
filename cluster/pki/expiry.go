package pki

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Expiry says until when a certificate file is good.
type Expiry struct {
	Name     string // of the file, without .crt
	NotAfter time.Time
}

// Expiries reads the certificates in the directories, by name. A file with several is as
// good as the first of them to end. What cannot be read is left out: those who need it say so.
func Expiries(dirs ...string) (all []Expiry) {
	seen := make(map[string]bool)
	for _, dir := range dirs {
		files, _ := filepath.Glob(filepath.Join(dir, "*.crt"))
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".crt")
			data, err := os.ReadFile(file)
			if notAfter := firstEnd(data); err == nil && !seen[name] && !notAfter.IsZero() {
				all, seen[name] = append(all, Expiry{name, notAfter}), true
			}
		}
	}
	slices.SortFunc(all, func(a, b Expiry) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func firstEnd(data []byte) (end time.Time) {
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return end
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err == nil && (end.IsZero() || cert.NotAfter.Before(end)) {
			end = cert.NotAfter
		}
	}
}
