package main

import "regexp"

// A meant difference is one where Kontiki is better on purpose. All patterns
// must be found, and all lines that differ must be of those that are to differ,
// so that nothing else hides behind it.
type meant struct {
	reason  string
	request *regexp.Regexp // in "METHOD path?query"
	peer    *regexp.Regexp // in the peer's answer
	kontiki *regexp.Regexp // in Kontiki's
	lines   *regexp.Regexp // in each line that differs, with its - or +
}

// refusal are the lines in which a 400 differs from a 500.
var refusal = regexp.MustCompile(`^([-+]HTTP/2.0 [45]00|[-+] +"code": [45]00,|\+ +"reason": "BadRequest",|[-+] +"message": ".*",?)$`)

var meantDifferences = []meant{
	{
		reason:  "a resourceVersion that is no number is the client's mistake: 400, not 500",
		request: regexp.MustCompile(`^GET .*resourceVersion=[^&]*`),
		peer:    regexp.MustCompile(`^HTTP/2.0 500\n(?s:.*)strconv.ParseUint`),
		kontiki: regexp.MustCompile(`^HTTP/2.0 400\n(?s:.*)invalid resource version`),
		lines:   refusal,
	},
	{
		reason:  "a new object that has a resourceVersion is the client's mistake: 400, not 500",
		request: regexp.MustCompile(`^POST `),
		peer:    regexp.MustCompile(`^HTTP/2.0 500\n(?s:.*)"message": "resourceVersion should not be set on objects to be created"`),
		kontiki: regexp.MustCompile(`^HTTP/2.0 400\n(?s:.*)"message": "resourceVersion should not be set on objects to be created"`),
		lines:   refusal,
	},
	{
		reason:  "an apply body that does not fit its schema is the client's mistake: 400, not 500",
		request: regexp.MustCompile(`^PATCH `),
		peer:    regexp.MustCompile(`^HTTP/2.0 500\n(?s:.*)"message": "failed to (create typed patch object: |convert new object )`),
		kontiki: regexp.MustCompile(`^HTTP/2.0 400\n(?s:.*)"message": "failed to (create typed patch object: |convert new object )`),
		lines:   refusal,
	},
	{
		reason:  "a new version of an object whose resourceVersion is no number is the client's mistake: 400, not 500",
		request: regexp.MustCompile(`^(PUT|PATCH) `),
		peer:    regexp.MustCompile(`^HTTP/2.0 500\n(?s:.*)strconv.ParseUint`),
		kontiki: regexp.MustCompile(`^HTTP/2.0 400\n(?s:.*)invalid resource version`),
		lines:   refusal,
	},
	{
		reason:  "a strategic merge patch that does not make sense is the client's mistake: 400, not 500",
		request: regexp.MustCompile(`^PATCH `),
		peer:    regexp.MustCompile(`^HTTP/2.0 500\n(?s:.*)"message": "(unknown patch type|delete patch type|unable to find|invalid patch|map: |expected )`),
		kontiki: regexp.MustCompile(`^HTTP/2.0 400\n`),
		lines:   refusal,
	},
	{
		reason:  "a binding that is not valid is the client's mistake: 422 with its causes, not 500",
		request: regexp.MustCompile(`^POST .*/(binding|bindings)(\?.*)?$`),
		peer:    regexp.MustCompile(`^HTTP/2.0 500\n(?s:.*)"message": "target\.`),
		kontiki: regexp.MustCompile(`^HTTP/2.0 422\n(?s:.*)"reason": "Invalid"`),
		lines:   regexp.MustCompile(`.*`), // the whole answer is another
	},
	{
		reason:  "a path in which upstream finds neither kind nor namespace leads nowhere: 404, not 500",
		request: regexp.MustCompile(`^[A-Z]+ /api/v1/(watch|proxy)/?$`),
		peer:    regexp.MustCompile(`^HTTP/2.0 500\n(?s:.*)failed to create RequestInfo`),
		kontiki: regexp.MustCompile(`^HTTP/2.0 404\n`),
		lines:   regexp.MustCompile(`.*`), // the whole answer is another
	},
	{
		reason:  "/openapi/v3 says that it is JSON, and has an Etag; of the peer's aggregator it is text without one",
		request: regexp.MustCompile(`^[A-Z]+ /openapi/v3$`),
		peer:    regexp.MustCompile(`^HTTP/2.0 200\n(?s:.*)\nContent-Type: text/plain; charset=utf-8\n`),
		kontiki: regexp.MustCompile(`^HTTP/2.0 200\n(?s:.*)\nContent-Type: application/json\n(?s:.*)Etag: <some>\n`),
		lines:   regexp.MustCompile(`^([-+]Content-Type: .*|\+Etag: <some>|[-+]body: .*json.*)$`),
	},
	{
		reason:  "a service without a good name is told so; the peer makes an IPAddress for it first, a kind that Kontiki does not have, and speaks of that",
		request: regexp.MustCompile(`^POST .*/services(\?.*)?$`),
		peer:    regexp.MustCompile(`^HTTP/2.0 422\n(?s:.*)"message": ".*spec.clusterIPs: .*IPAddress.networking.k8s.io .* is invalid: spec.parentRef.name: `),
		kontiki: regexp.MustCompile(`^HTTP/2.0 422\n(?s:.*)"field": "metadata\.(name|generateName)",`),
		lines:   regexp.MustCompile(`^[-+] +("(field|message|reason)": ".*",?|[{}],?)$`),
	},
	{
		reason:  "who asks for an address outside of the range of services is told the range",
		request: regexp.MustCompile(`^(POST|PATCH) .*/services(/[a-z0-9]+)?(\?.*)?$`),
		peer:    regexp.MustCompile(`^HTTP/2.0 422\n(?s:.*): failed to allocate IP .*: the provided network does not match the current range"`),
		kontiki: regexp.MustCompile(`^HTTP/2.0 422\n(?s:.*): failed to allocate IP .* is not in the valid range\. The range of valid IPs is `),
		lines:   regexp.MustCompile(`^[-+] +"message": ".*failed to allocate IP .*",?$`),
	},
	{
		reason:  "the system namespaces and default/kubernetes are made by the server, under its own name and with its own port",
		request: regexp.MustCompile(`^GET /api/v1/namespaces/default(/services/kubernetes)?$`),
		peer:    regexp.MustCompile(`"manager": "kube-apiserver"`),
		kontiki: regexp.MustCompile(`"manager": "kontiki"`),
		lines:   regexp.MustCompile(`^[-+] +("manager": "(kontiki|kube-apiserver)",?|"targetPort": [0-9]+)$`),
	},
}

func whyMeant(d difference) *meant {
	for i, m := range meantDifferences {
		if m.request.MatchString(d.asked.String()) && m.peer.MatchString(d.peer) && m.kontiki.MatchString(d.kontiki) &&
			m.allows(diff(d.peer, d.kontiki)) {
			return &meantDifferences[i]
		}
	}
	return nil
}

func (m *meant) allows(lines []string) bool {
	for _, line := range lines {
		if line[0] != ' ' && !m.lines.MatchString(line) {
			return false
		}
	}
	return true
}
