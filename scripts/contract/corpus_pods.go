package main

import "fmt"

func pod(spec string) string {
	return `,"spec":{"containers":[{"name":"c","image":"example.com/i:1"}]` + spec + `}`
}

func container(rest string) string {
	return `,"spec":{"containers":[{"name":"c","image":"example.com/i:1"` + rest + `}]}`
}

// podSchema is defaults and validation of new pods.
func podSchema() []sequence {
	var all []step
	specs := []string{
		`,"spec":{}`, `,"spec":{"containers":[]}`, `,"spec":{"containers":[{}]}`, `,"spec":{"containers":[{"name":"c"}]}`,
		`,"spec":{"containers":[{"image":"i"}]}`, `,"spec":{"containers":[{"name":"c","image":"i"},{"name":"c","image":"i"}]}`, ``,
		`,"spec":{"containers":[{"name":"c","image":"i:latest"},{"name":"d","image":"i:1"},{"name":"e","image":"i@sha256:aa"},{"name":"f","image":"i","imagePullPolicy":"Never"}]}`,
		pod(`,"restartPolicy":"Never"`), pod(`,"restartPolicy":"Maybe"`), pod(`,"terminationGracePeriodSeconds":0`),
		pod(`,"terminationGracePeriodSeconds":-1`), pod(`,"dnsPolicy":"None"`), pod(`,"dnsPolicy":"Default"`),
		pod(`,"nodeName":"$NS-n"`), pod(`,"nodeName":"UP"`), pod(`,"hostNetwork":true`),
		pod(`,"priority":5`), pod(`,"priorityClassName":"system-node-critical"`), pod(`,"priorityClassName":"nonsense"`),
		pod(`,"preemptionPolicy":"Never"`), pod(`,"tolerations":[{"operator":"Exists"}]`),
		pod(`,"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute"}]`),
		pod(`,"tolerations":[{"key":"a","operator":"Nonsense"}]`), pod(`,"activeDeadlineSeconds":5`),
		pod(`,"activeDeadlineSeconds":0`), pod(`,"serviceAccountName":"sa"`), pod(`,"serviceAccount":"sa"`),
		pod(`,"hostname":"h","subdomain":"s"`), pod(`,"hostname":"UP"`), pod(`,"nodeSelector":{"a":"b"}`),
		pod(`,"schedulingGates":[{"name":"example.com/g"}]`),
		pod(`,"schedulingGates":[{"name":"example.com/g"}],"nodeName":"$NS-n"`),
		pod(`,"ephemeralContainers":[{"name":"e","image":"i"}]`), pod(`,"initContainers":[{"name":"i","image":"i"}]`),
		pod(`,"initContainers":[{"name":"c","image":"i"}]`),
		pod(`,"initContainers":[{"name":"s","image":"i","restartPolicy":"Always"}]`),
		pod(`,"volumes":[{"name":"v","emptyDir":{}}]`), pod(`,"volumes":[{"name":"v"}]`),
		pod(`,"volumes":[{"name":"v","emptyDir":{},"hostPath":{"path":"/x"}}]`),
		pod(`,"volumes":[{"name":"v","secret":{"secretName":"s"}},{"name":"w","configMap":{"name":"c"}},{"name":"x","projected":{"sources":[]}}]`),
		pod(`,"securityContext":{"runAsUser":-1}`),
		pod(`,"securityContext":{"runAsNonRoot":true,"fsGroup":5,"sysctls":[{"name":"a","value":"b"}]}`),
		pod(`,"os":{"name":"linux"}`), pod(`,"os":{"name":"beos"}`), pod(`,"overhead":{"cpu":"1"}`), pod(`,"runtimeClassName":"x"`),
		pod(`,"shareProcessNamespace":true,"hostPID":true`),
		pod(`,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[]}}}`),
		pod(`,"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"}]`),
		pod(`,"hostAliases":[{"ip":"x","hostnames":["a"]}]`),
		pod(`,"imagePullSecrets":[{"name":"a"},{"name":""}]`), pod(`,"hostUsers":false`),
		pod(`,"resources":{"limits":{"cpu":"1"}}`), pod(`,"schedulingGroup":{"podGroupName":"x"}`), pod(`,"hostnameOverride":"x"`),
		pod(`,"setHostnameAsFQDN":true`), pod(`,"enableServiceLinks":false,"automountServiceAccountToken":false`),
		container(`,"resources":{"limits":{"cpu":"100m","memory":"1Gi"}}`),
		container(`,"resources":{"requests":{"cpu":"2"},"limits":{"cpu":"1"}}`),
		container(`,"resources":{"requests":{"cpu":"0.0001"}}`), container(`,"resources":{"limits":{"cpu":"x"}}`),
		container(`,"resources":{"requests":{"nonsense":"1"}}`),
		container(`,"ports":[{"containerPort":80}]`), container(`,"ports":[{"containerPort":80},{"containerPort":80}]`),
		container(`,"ports":[{"containerPort":0,"name":"UPPER_"}]`), container(`,"ports":[{"containerPort":80,"hostPort":81}]`),
		container(`,"env":[{"name":"A","value":"b"},{"name":"A","value":"c"}]`), container(`,"env":[{"name":"1=2","value":"b"}]`),
		container(`,"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]`),
		container(`,"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"nonsense"}}}]`),
		container(`,"livenessProbe":{"httpGet":{"port":80}}`), container(`,"livenessProbe":{}`),
		container(`,"readinessProbe":{"exec":{"command":["x"]},"periodSeconds":-1}`),
		container(`,"lifecycle":{"preStop":{"exec":{"command":["x"]}}}`), container(`,"securityContext":{"privileged":true}`),
		container(`,"securityContext":{"allowPrivilegeEscalation":false,"privileged":true}`),
		container(`,"volumeMounts":[{"name":"v","mountPath":"/x"}]`), container(`,"imagePullPolicy":"Nonsense"`),
		container(`,"terminationMessagePolicy":"X"`),
		container(`,"stdin":true,"tty":true,"workingDir":"/x","command":["a"],"args":["b"]`), container(`,"restartPolicy":"Never"`),
		container(`,"resizePolicy":[{"resourceName":"cpu","restartPolicy":"NotRequired"}]`),
	}
	for i, spec := range specs {
		name := fmt.Sprintf("p%d", i)
		all = append(all, post(pods.collection(), pods.body(spec, name)),
			patch("apply", pods.item(name+"x"), pods.body(spec, name+"x"), "fieldManager=m", "dryRun=All"))
	}
	all = append(all, post(pods.collection(), pods.body(pods.valid+`,"status":{"phase":"Running","podIP":"1.2.3.4"}`, "s")),
		post(pods.collection(), pods.object("t", `"annotations":{"kubernetes.io/config.mirror":"x"}`)),
		post(pods.collection(), pods.object("u", `"labels":{"a":"b"}`,
			`"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"x","container.apparmor.security.beta.kubernetes.io/c":"unconfined"}`)),
		post(pods.collection(), pods.body(specs[7], "proto")).asProto(), get(pods.collection()).asProto())
	return []sequence{{"new pods", all}}
}

// podUpdates are what may change.
func podUpdates() []sequence {
	big := pod(`,"tolerations":[{"key":"a","operator":"Exists","effect":"NoSchedule"}],"initContainers":[{"name":"i","image":"i:1"}],"schedulingGates":[{"name":"example.com/g"},{"name":"example.com/h"}],"activeDeadlineSeconds":50,"terminationGracePeriodSeconds":30`)
	all := []step{watching(pods.collection(), "watch=true"), post(pods.collection(), pods.body(big, "a"))}
	for _, body := range []string{
		`{"spec":{"containers":[{"name":"c","image":"example.com/i:2"}]}}`,
		`{"spec":{"containers":[{"name":"c","command":["x"]}]}}`, `{"spec":{"containers":[{"name":"new","image":"i"}]}}`,
		`{"spec":{"initContainers":[{"name":"i","image":"i:2"}]}}`, `{"spec":{"activeDeadlineSeconds":40}}`,
		`{"spec":{"activeDeadlineSeconds":60}}`,
		`{"spec":{"activeDeadlineSeconds":null}}`, `{"spec":{"tolerations":[{"key":"b","operator":"Exists"}]}}`,
		`{"spec":{"terminationGracePeriodSeconds":5}}`, `{"spec":{"schedulingGates":[{"$patch":"delete","name":"example.com/g"}]}}`,
		`{"spec":{"schedulingGates":[{"name":"example.com/i"}]}}`, `{"spec":{"nodeSelector":{"a":"b"}}}`,
		`{"spec":{"nodeName":"x"}}`, `{"spec":{"restartPolicy":"Never"}}`, `{"spec":{"priority":1}}`, `{"spec":{"hostname":"x"}}`,
		`{"status":{"phase":"Running"}}`, `{"spec":{"ephemeralContainers":[{"name":"e","image":"i"}]}}`,
		`{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1"}}}]}}`,
		`{"metadata":{"generation":9,"labels":{"a":"b"}}}`,
		`{"spec":{"containers":[{"name":"c","image":""}]}}`, `{"spec":{"containers":null}}`,
		`{"spec":{"$setElementOrder/containers":[{"name":"c"}]}}`, `{"spec":{"tolerations":null}}`,
		`{"spec":{"volumes":[{"name":"v","emptyDir":{}}]}}`, `{"spec":null}`, `{"spec":{"securityContext":{"runAsUser":5}}}`,
		`{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}}}}`,
	} {
		all = append(all, patch("strategic", pods.item("a"), body))
	}
	return []sequence{
		{"changes of pods", append(all, put(pods.item("a"), pods.body(big, "a")), put(pods.item("a"), pods.object("a")),
			put(pods.item("missing"), pods.object("missing")), get(pods.item("a")),
			patch("merge", pods.item("a"), `{"spec":{"containers":[]}}`),
			patch("json", pods.item("a"), `[{"op":"replace","path":"/spec/containers/0/image","value":"z"}]`),
			patch("apply", pods.item("a"), pods.body(pods.changed, "a"), "fieldManager=m"),
			patch("apply", pods.item("a"), pods.body(pods.changed, "a"), "fieldManager=m", "force=true"), get(pods.item("a")))},
	}
}

// podSubresources are status and ephemeral containers.
func podSubresources() []sequence {
	a := pods.item("a")
	status := func(body string) step { return patch("merge", a+"/status", `{"status":`+body+`}`) }
	ephemeral := func(body string) step {
		return patch("strategic", a+"/ephemeralcontainers", `{"spec":{"ephemeralContainers":[`+body+`]}}`)
	}
	running := pod(`,"nodeName":"$NS-n"`)
	return []sequence{
		{"the status of pods", []step{
			watching(pods.collection(), "watch=true"), post(pods.collection(), pods.body(running, "a")), get(a + "/status"),
			status(`{"phase":"Running","startTime":"2024-05-06T07:08:09Z"}`), status(`{"phase":"Nonsense"}`),
			status(`{"conditions":[{"type":"Ready","status":"True"}]}`),
			status(`{"conditions":[{"type":"Ready","status":"Maybe"}]}`), status(`{"conditions":[{"type":"","status":"True"}]}`),
			status(`{"podIP":"10.0.0.1"}`), status(`{"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"},{"ip":"2001:db8::1"}]}`),
			status(`{"podIPs":[{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}]}`), status(`{"podIP":"nonsense"}`),
			status(`{"hostIP":"10.0.0.5","hostIPs":[{"ip":"10.0.0.5"}]}`), status(`{"qosClass":"Guaranteed"}`),
			status(`{"nominatedNodeName":"n"}`),
			status(`{"containerStatuses":[{"name":"c","ready":true,"restartCount":0,"image":"i","imageID":"x","state":{"terminated":{"exitCode":1}}}]}`),
			status(`{"containerStatuses":[{"name":"c","ready":true,"restartCount":0,"image":"i","imageID":"x","state":{"running":{}}}]}`),
			status(`{"containerStatuses":[{"name":"zz"}]}`), status(`{"observedGeneration":-1}`),
			status(`{"resourceClaimStatuses":[{"name":"x"}]}`), status(`{"phase":7}`), status(`null`),
			patch("merge", a+"/status",
				`{"metadata":{"labels":{"from":"status"},"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Thing","name":"n","uid":"u"}]},"spec":{"hostname":"h"}}`),
			put(a+"/status", pods.body(running+`,"status":{"phase":"Succeeded"}`, "a")),
			put(a+"/status", pods.body(running+`,"status":{"phase":"Succeeded"}`, "a", `"resourceVersion":"1"`)),
			put(a+"/status", pods.body(running, "b")), put(a+"/status", pods.body(pod(`,"nodeName":"other"`), "a")),
			patch("strategic", a+"/status", `{"status":{"conditions":[{"type":"PodScheduled","status":"True"}]}}`),
			patch("json", a+"/status", `[{"op":"add","path":"/status/message","value":"m"}]`),
			patch("apply", a+"/status", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"status":{"reason":"R"}}`,
				"fieldManager=m"), put(pods.item("missing")+"/status", pods.object("missing")),
			patch("merge", pods.item("missing")+"/status", `{}`),
			patch("apply", pods.item("missing")+"/status", pods.body("", "missing"), "fieldManager=m"),
			get(a + "/status").accepting(table), get(a + "/status").asProto(), put(a+"/status", `{`),
			put(a+"/status", pods.object("a"), "dryRun=All", "fieldManager=x"), get(a),
		}},
		{"ephemeral containers", []step{
			post(pods.collection(), pods.object("a")), get(a + "/ephemeralcontainers"), ephemeral(`{"name":"e","image":"i"}`),
			ephemeral(`{"name":"e","image":"other"}`), ephemeral(`{"name":"c","image":"i"}`),
			ephemeral(`{"name":"f","image":"i","ports":[{"containerPort":80}]}`),
			ephemeral(`{"name":"f","image":"i","livenessProbe":{"exec":{"command":["x"]}}}`),
			ephemeral(`{"name":"f","image":"i","resources":{"limits":{"cpu":"1"}}}`),
			ephemeral(`{"name":"f","image":"i","lifecycle":{}}`), ephemeral(`{"name":"f","image":"i","targetContainerName":"c"}`),
			ephemeral(`{"name":"g","image":"i","targetContainerName":"zz"}`), ephemeral(`{"name":"h"}`),
			ephemeral(`{"$patch":"delete","name":"e"}`),
			put(a+"/ephemeralcontainers", pods.object("a")),
			put(a+"/ephemeralcontainers",
				pods.body(`,"spec":{"ephemeralContainers":[{"name":"e","image":"i"},{"name":"f","image":"i","targetContainerName":"c"},{"name":"k","image":"i"}]}`,
					"a", `"labels":{"ignored":"1"}`)),
			put(pods.item("missing")+"/ephemeralcontainers", pods.object("missing")),
			patch("merge", pods.item("missing")+"/ephemeralcontainers", `{}`),
			patch("apply", a+"/ephemeralcontainers", pods.body(`,"spec":{"ephemeralContainers":[{"name":"z","image":"i"}]}`, "a"),
				"fieldManager=m"), get(a), patch("merge", a, `{"spec":{"ephemeralContainers":null}}`),
		}},
	}
}

// podMoves are resize and eviction.
func podMoves() []sequence {
	a := pods.item("a")
	running := pod(`,"nodeName":"$NS-n"`)
	return []sequence{
		{"resize", []step{
			post(pods.collection(), pods.body(container(`,"resources":{"requests":{"cpu":"1"},"limits":{"cpu":"2"}}`), "a")),
			get(a + "/resize"), patch("strategic", a+"/resize",
				`{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]}}`),
			patch("strategic", a+"/resize", `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"9"}}}]}}`),
			patch("strategic", a+"/resize", `{"spec":{"containers":[{"name":"c","image":"other"}]}}`),
			put(a+"/resize", pods.body(container(`,"resources":{"requests":{"cpu":"1"},"limits":{"cpu":"3"}}`), "a")),
			patch("strategic", a+"/resize", `{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":null}}}]}}`), get(a),
		}},
		{"eviction", []step{
			post(pods.collection(), pods.object("a")), post(a+"/eviction",
				`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"b"}}`),
			post(a+"/eviction", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"a"}}`, "dryRun=All"),
			post(a+"/eviction",
				`{"metadata":{"name":"a"},"deleteOptions":{"preconditions":{"uid":"11111111-2222-3333-4444-555555555555"}}}`),
			post(a+"/eviction", `{"metadata":{"name":"a"},"deleteOptions":{"dryRun":["x"]}}`),
			post(a+"/eviction", `{"apiVersion":"policy/v1beta1","kind":"Eviction","metadata":{"name":"a"}}`), get(a),
			post(a+"/eviction", `{"metadata":{"name":"a"}}`), post(pods.item("missing")+"/eviction", `{"metadata":{"name":"missing"}}`),
			post(pods.collection(), pods.body(running, "b")),
			post(pods.item("b")+"/eviction",
				`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"b"},"deleteOptions":{"gracePeriodSeconds":5}}`),
			get(pods.item("b")),
		}},
	}
}

// podLogs without a kubelet.
func podLogs() []sequence {
	all := []step{post(pods.collection(), pods.object("a")),
		post(pods.collection(), pods.body(`,"spec":{"containers":[{"name":"c","image":"i"},{"name":"d","image":"i"}]}`, "two")),
		post(pods.collection(), pods.body(pod(`,"nodeName":"$NS-none"`), "lost"))}
	for _, query := range []string{
		"", "container=c", "container=zz", "container=", "follow=true", "follow=maybe", "previous=true", "timestamps=true",
		"limitBytes=0", "limitBytes=5", "limitBytes=abc", "tailLines=-1", "tailLines=0", "tailLines=abc", "sinceSeconds=0",
		"sinceSeconds=5", "sinceTime=nonsense",
		"sinceTime=2024-05-06T07:08:09Z", "sinceSeconds=5&sinceTime=2024-05-06T07:08:09Z", "stream=All", "stream=Stdout",
		"stream=nonsense", "stream=Stdout&tailLines=1", "insecureSkipTLSVerifyBackend=true", "pretty=true",
		"limitBytes=-5&tailLines=-5&sinceSeconds=-5",
	} {
		for _, name := range []string{"a", "two", "lost", "missing"} {
			all = append(all, get(pods.item(name)+"/log", query))
		}
	}
	return []sequence{{"logs", append(all, get(pods.item("a")+"/log").accepting("application/json"),
		get(pods.item("a")+"/log").accepting("text/html"), get(pods.item("lost")+"/log").accepting(protobufMedia))}}
}

// podDeletes are graceful when a node has to stop the pod.
func podDeletes() []sequence {
	var all []sequence
	for _, option := range []string{"", "gracePeriodSeconds=0", "gracePeriodSeconds=7", "gracePeriodSeconds=-7",
		"propagationPolicy=Background", "dryRun=All"} {
		all = append(all, sequence{"graceful deletes of pods, " + option, []step{
			watching(pods.collection(), "watch=true"), post(pods.collection(),
				pods.body(pod(`,"nodeName":"$NS-n","terminationGracePeriodSeconds":20`), "a")), del(pods.item("a"), option),
			get(pods.item("a")), del(pods.item("a"), "gracePeriodSeconds=100"), del(pods.item("a"), "gracePeriodSeconds=3"),
			get(pods.item("a")),
			patch("merge", pods.item("a"), `{"metadata":{"deletionGracePeriodSeconds":1}}`),
			patch("merge", pods.item("a"), `{"metadata":{"finalizers":["example.com/x"]}}`),
			del(pods.item("a"), "gracePeriodSeconds=0"), get(pods.item("a")),
		}})
	}
	return append(all, sequence{"deletes of pods in every phase", []step{
		post(pods.collection(), pods.body(pod(`,"nodeName":"$NS-n"`), "a")),
		patch("merge", pods.item("a")+"/status", `{"status":{"phase":"Succeeded"}}`), del(pods.item("a")), get(pods.item("a")),
		post(pods.collection(), pods.object("b")), del(pods.item("b")), get(pods.item("b")),
		post(pods.collection(), pods.body(pod(`,"nodeName":"$NS-n"`), "c")), del(pods.item("c")).send(`{"gracePeriodSeconds":4}`),
		del(pods.collection()), del(pods.collection(), "gracePeriodSeconds=0"), get(pods.collection()),
	}})
}

// nodesAndBindings are what a scheduler and a kubelet do.
func nodesAndBindings() []sequence {
	node := "/api/v1/nodes/$NS-n"
	make := post("/api/v1/nodes",
		`{"apiVersion":"v1","kind":"Node","metadata":{"name":"$NS-n","labels":{"topology.kubernetes.io/zone":"z","topology.kubernetes.io/region":"r"}}}`)
	bind := func(name, target string) step {
		return post(pods.item(name)+"/binding",
			`{"apiVersion":"v1","kind":"Binding","metadata":{"name":"`+name+`"},"target":{"apiVersion":"v1","kind":"Node","name":"`+target+`"}}`)
	}
	return []sequence{
		{"bindings", []step{
			make, watching(pods.collection(), "watch=true"), post(pods.collection(), pods.object("a")), bind("a", ""),
			bind("a", "$NS-n"), bind("a", "$NS-n"), get(pods.item("a")), bind("missing", "$NS-n"),
			post(pods.collection(), pods.object("b")), bind("b", "$NS-not-there"), get(pods.item("b")),
			post("/api/v1/namespaces/$NS/bindings", `{"metadata":{"name":"c"},"target":{"name":"$NS-n"}}`),
			post(pods.collection(), pods.body(pod(`,"schedulingGates":[{"name":"example.com/g"}]`), "d")), bind("d", "$NS-n"),
			post(pods.collection(), pods.object("e")), bind("e", "UP"),
			post(pods.item("e")+"/binding", `{"metadata":{"name":"e"},"target":{"kind":"Pod","name":"x"}}`),
			post(pods.item("e")+"/binding", `{"metadata":{"name":"e"},"target":{"name":"$NS-n"}}`, "dryRun=All"), get(pods.item("e")),
			get(pods.item("a") + "/log"), get(pods.item("a") + "/proxy"),
		}},
		{"nodes", []step{
			make, make, get(node), get(node).accepting(table), get(node + "/status"),
			patch("merge", node+"/status",
				`{"status":{"conditions":[{"type":"Ready","status":"True"}],"addresses":[{"type":"InternalIP","address":"127.0.0.1"}]}}`),
			patch("merge", node, `{"spec":{"unschedulable":true}}`),
			patch("merge", node, `{"spec":{"podCIDR":"10.1.0.0/24","podCIDRs":["10.1.0.0/24"]}}`),
			patch("merge", node, `{"spec":{"podCIDR":"10.2.0.0/24"}}`),
			patch("merge", node, `{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}`),
			patch("merge", node, `{"spec":{"taints":[{"key":"a","effect":"Nonsense"}]}}`),
			patch("strategic", node, `{"spec":{"taints":[{"key":"b","effect":"NoExecute"}]}}`),
			patch("merge", node, `{"spec":{"providerID":"x"}}`), patch("merge", node, `{"spec":{"providerID":"y"}}`),
			put(node, `{"metadata":{"name":"$NS-n"}}`), patch("apply", node,
				`{"apiVersion":"v1","kind":"Node","metadata":{"name":"$NS-n","labels":{"l":"m"}}}`, "fieldManager=m"),
			get("/api/v1/nodes", param("fieldSelector", "spec.unschedulable=true,metadata.name=$NS-n")),
			get("/api/v1/nodes", param("fieldSelector", "nonsense=true")), get(node).asProto(),
			post("/api/v1/nodes", `{"metadata":{"name":"$NS_N"}}`),
			watching("/api/v1/nodes", "watch=true", param("fieldSelector", "metadata.name=$NS-n")), del(node), get(node),
			get(node + "/proxy"), post("/api/v1/nodes", `{"metadata":{"name":"$NS-g"},"spec":{"configSource":{}}}`),
		}},
	}
}
