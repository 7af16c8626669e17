package auth

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
)

// publicPaths need no credentials: probes have none. They are those that
// upstream's role system:public-info-viewer names.
func publicPaths() []string {
	return []string{"/healthz", "/livez", "/readyz", "/version", "/version/"}
}

// JoinPath is where a new node asks to be let in. It has no credentials but its
// token, which the handler checks.
const JoinPath = "/kontiki/v1/join"

func publicConditions() []apiserver.AnonymousAuthCondition {
	conditions := []apiserver.AnonymousAuthCondition{{Path: JoinPath}}
	for _, path := range publicPaths() {
		conditions = append(conditions, apiserver.AnonymousAuthCondition{Path: path})
	}
	return conditions
}

// NewAuthorizer lets system:masters do everything, everybody read the public
// paths and ask to join, and everybody who is authenticated read the documents
// about the API, as upstream's role system:discovery does.
func NewAuthorizer() authorizer.Authorizer {
	return union.New(
		authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup),
		authorizer.AuthorizerFunc(readDocuments),
		authorizer.AuthorizerFunc(askToJoin),
	)
}

func askToJoin(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if !a.IsResourceRequest() && a.GetVerb() == "post" && a.GetPath() == JoinPath {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func readDocuments(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	public := slices.Contains(publicPaths(), a.GetPath())
	known := slices.Contains(a.GetUser().GetGroups(), user.AllAuthenticated)
	if !a.IsResourceRequest() && a.GetVerb() == "get" && (public || known && isDocument(a.GetPath())) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// isDocument says whether a path is one of discovery or OpenAPI.
func isDocument(path string) bool {
	for _, root := range []string{"/api", "/apis", "/openapi"} {
		if path == root || strings.HasPrefix(path, root+"/") {
			return true
		}
	}
	return false
}
