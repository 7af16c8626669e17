package main

import "regexp"

// A meant difference is one where Kontiki is better on purpose. All three
// patterns must be found, so that nothing else hides behind it.
type meant struct {
	reason  string
	request *regexp.Regexp // in "METHOD path?query"
	peer    *regexp.Regexp // in the peer's answer
	kontiki *regexp.Regexp // in Kontiki's
}

var meantDifferences = []meant{
	{
		reason:  "a resourceVersion that is no number is the client's mistake: 400, not 500",
		request: regexp.MustCompile(`^GET .*resourceVersion=[^&]*`),
		peer:    regexp.MustCompile(`^HTTP/2.0 500\n(?s:.*)strconv.ParseUint`),
		kontiki: regexp.MustCompile(`^HTTP/2.0 400\n(?s:.*)invalid resource version`),
	},
	{
		reason:  "the system namespaces are made by the server, under its own name",
		request: regexp.MustCompile(`^GET /api/v1/namespaces/default$`),
		peer:    regexp.MustCompile(`"manager": "kube-apiserver"`),
		kontiki: regexp.MustCompile(`"manager": "kontiki"`),
	},
}

func whyMeant(d difference) *meant {
	for i, m := range meantDifferences {
		if m.request.MatchString(d.asked.String()) && m.peer.MatchString(d.peer) && m.kontiki.MatchString(d.kontiki) {
			return &meantDifferences[i]
		}
	}
	return nil
}
