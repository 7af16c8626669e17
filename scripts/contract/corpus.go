package main

import "slices"

// corpus is every row of the API's contract, as requests. Each function is a
// chapter; those with a kind in front are asked for every kind.
func corpus() []sequence {
	return slices.Concat(
		paths(), forEach(verbs), forEach(deprecatedWatches), subresourceVerbs(), clusterVerbs(),
		forEach(selectors), forEach(paging), forEach(writeOptions), forEach(fieldValidation), forEach(dryRuns), forEach(managers),
		forEach(versions), firstVersion(),
		forEach(watches), watchEnds(),
		forEach(encodings), forEach(bodies), tables(), discoveryDocuments(),
		forEach(failures), credentialsAndRights(), sizes(), compressed(),
		forEach(metadata), forEach(conflicts), forEach(patches), forEach(applies),
		forEach(deletes), forEach(collections), forEach(finalizers), garbage(), namespaces(),
		eventSchema(), endpointsSchema(), leaseSchema(), serviceSchema(),
		podSchema(), podUpdates(), podSubresources(), podMoves(), podLogs(), podDeletes(), nodesAndBindings(),
	)
}

// forEach makes a sequence of each of a chapter's, for every kind.
func forEach(chapter func(kind) []sequence) (all []sequence) {
	for _, k := range kinds {
		for _, q := range chapter(k) {
			q.name = k.String() + ": " + q.name
			all = append(all, q)
		}
	}
	return all
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// everyMethod sends every method to a path, with a body where one belongs.
func everyMethod(path, body string) (steps []step) {
	for _, method := range methods {
		s := do(method, path)
		switch method {
		case "PATCH":
			s = patch("merge", path, `{"metadata":{"labels":{"by":"patch"}}}`)
		case "POST", "PUT":
			s = s.send(body)
		}
		steps = append(steps, s)
	}
	return steps
}
