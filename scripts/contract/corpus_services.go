package main

import "fmt"

// serviceSchema is what Services are allowed to be, and what they are given.
func serviceSchema() []sequence {
	list := services.collection()
	const port = `"ports":[{"port":80}]`
	var all []step
	for i, spec := range []string{
		`{}`, `null`, `{"ports":[]}`, `{` + port + `}`, `{"ports":[{"port":80},{"port":81}]}`, `{"ports":[{"port":80},{"port":80}]}`,
		`{"ports":[{"port":0}]}`, `{"ports":[{"port":65536}]}`, `{"ports":[{"port":"80"}]}`, `{"ports":[{"port":80,"protocol":"UDP"}]}`,
		`{"ports":[{"port":80,"protocol":"Odd"}]}`, `{"ports":[{"port":80,"targetPort":"web"}]}`, `{"ports":[{"port":80,"targetPort":"WEB!"}]}`,
		`{"ports":[{"port":80,"targetPort":0}]}`, `{"ports":[{"port":80,"appProtocol":"http"}]}`, `{"ports":[{"port":80,"nodePort":30100}]}`,
		`{"type":"NodePort",` + port + `}`, `{"type":"NodePort","ports":[{"port":80,"nodePort":80}]}`,
		`{"type":"LoadBalancer",` + port + `}`, `{"type":"LoadBalancer","allocateLoadBalancerNodePorts":false,` + port + `}`,
		`{"type":"LoadBalancer","loadBalancerClass":"example.com/lb",` + port + `}`, `{"type":"LoadBalancer","loadBalancerIP":"192.0.2.1",` + port + `}`,
		`{"type":"LoadBalancer","loadBalancerSourceRanges":["192.0.2.0/24"],` + port + `}`, `{"type":"LoadBalancer","loadBalancerSourceRanges":["x"],` + port + `}`,
		`{"type":"ExternalName","externalName":"example.com"}`, `{"type":"ExternalName"}`, `{"type":"ExternalName","externalName":"not a name"}`,
		`{"type":"ExternalName","externalName":"example.com","clusterIP":"None"}`, `{"type":"Odd",` + port + `}`,
		`{"clusterIP":"None",` + port + `}`, `{"clusterIP":"None","type":"NodePort",` + port + `}`, `{"clusterIP":"1.2.3.4",` + port + `}`,
		`{"clusterIP":"nonsense",` + port + `}`, `{"clusterIP":"","clusterIPs":["None"],` + port + `}`, `{"clusterIPs":["None"],` + port + `}`,
		`{"sessionAffinity":"ClientIP",` + port + `}`, `{"sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":0}},` + port + `}`,
		`{"sessionAffinity":"None","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":5}},` + port + `}`,
		`{"externalIPs":["192.0.2.9"],` + port + `}`, `{"externalIPs":["127.0.0.1"],` + port + `}`,
		`{"externalTrafficPolicy":"Local",` + port + `}`, `{"type":"NodePort","externalTrafficPolicy":"Local",` + port + `}`,
		`{"type":"LoadBalancer","externalTrafficPolicy":"Local",` + port + `}`, `{"internalTrafficPolicy":"Local",` + port + `}`,
		`{"internalTrafficPolicy":"Odd",` + port + `}`, `{"trafficDistribution":"PreferClose",` + port + `}`, `{"publishNotReadyAddresses":true,` + port + `}`,
		`{"ipFamilyPolicy":"SingleStack",` + port + `}`, `{"ipFamilyPolicy":"PreferDualStack",` + port + `}`, `{"ipFamilyPolicy":"RequireDualStack",` + port + `}`,
		`{"ipFamilies":["IPv4"],` + port + `}`, `{"ipFamilies":["IPv6"],` + port + `}`, `{"ipFamilies":["IPv4","IPv4"],` + port + `}`,
		`{"selector":{"a b":"c"},` + port + `}`, `{"selector":null,` + port + `}`, `{"selector":{},` + port + `}`,
	} {
		name := fmt.Sprintf("s%d", i)
		all = append(all, post(list, services.body(`,"spec":`+spec, name)), post(list, services.body(`,"spec":`+spec, name+"d"), "dryRun=All"),
			patch("merge", services.item("base"), `{"spec":`+spec+`}`),
			patch("apply", services.item(name+"x"), services.body(`,"spec":`+spec, name+"x"), "fieldManager=m"))
	}
	return []sequence{
		{"services", append([]step{post(list, services.object("base"))}, append(all, get(list), get(list).accepting(table))...)},
		{"services change their type", serviceTypes()},
		{"addresses and ports of services", serviceRanges()},
		{"the servers' own service", []step{get("/api/v1/namespaces/default/services/kubernetes").later()}},
		{"services and endpoints of their name", []step{
			post(list, services.object("a")), post(endpoints.collection(), endpoints.object("a")), post(endpoints.collection(), endpoints.object("b")),
			del(services.item("a"), "dryRun=All"), get(endpoints.item("a")), del(services.item("a")), get(endpoints.item("a")), get(endpoints.item("b")),
		}},
		{"services' status and proxy", []step{
			post(list, services.object("a")), get(services.item("a") + "/status"),
			patch("merge", services.item("a")+"/status", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.7"}]}}}`),
			patch("merge", services.item("a"), `{"spec":{"type":"LoadBalancer"}}`),
			patch("merge", services.item("a")+"/status", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.7"}]}}}`),
			patch("merge", services.item("a")+"/status", `{"spec":{"type":"ClusterIP"},"status":{"loadBalancer":{"ingress":[{"ip":"x"}]}}}`),
			put(services.item("a")+"/status", services.object("a")), get(services.item("a")).accepting(table), get(services.item("a") + "/proxy"),
			get(services.item("none") + "/proxy/path"), del(services.item("a")),
		}},
	}
}

// serviceTypes turns one service into every type and back: it keeps, gives back and
// is given addresses and ports.
func serviceTypes() (steps []step) {
	steps = append(steps, post(services.collection(), services.object("a")))
	for _, change := range []string{
		`{"type":"NodePort"}`, `{"type":"LoadBalancer"}`, `{"type":"ClusterIP"}`, `{"clusterIP":"None"}`, `{"clusterIP":"1.2.3.4"}`, `{"clusterIP":""}`,
		`{"clusterIP":null}`, `{"type":"ExternalName","externalName":"example.com"}`, `{"type":"ExternalName","externalName":"example.com","clusterIP":null,"clusterIPs":null}`,
		`{"type":"ClusterIP"}`, `{"type":"ClusterIP","externalName":null}`, `{"ports":null}`, `{"ports":[{"port":81}]}`, `{"ipFamilies":["IPv6"]}`,
		`{"type":"NodePort","ports":[{"port":81,"nodePort":1}]}`,
	} {
		steps = append(steps, patch("merge", services.item("a"), `{"spec":`+change+`}`), get(services.item("a")))
	}
	return append(steps, put(services.item("a"), services.object("a")),
		put(services.item("a"), services.body(services.changed, "a", `"resourceVersion":"{{a.rv}}"`)), del(services.item("a")), get(services.item("a")))
}

// serviceRanges asks for addresses and ports that a service has, had, or cannot have.
func serviceRanges() (steps []step) {
	const port = `"ports":[{"port":80}]`
	list := services.collection()
	steps = append(steps, post(list, services.body(`,"spec":{"type":"NodePort",`+port+`}`, "a")), post(list, services.object("b")))
	for _, spec := range []string{
		`{"clusterIP":"{{a.clusterIP}}",` + port + `}`, `{"clusterIPs":["{{a.clusterIP}}"],` + port + `}`,
		`{"clusterIP":"{{a.clusterIP}}","clusterIPs":["{{a.clusterIP}}","{{b.clusterIP}}"],` + port + `}`,
		`{"clusterIP":"{{a.clusterIP}}","clusterIPs":["{{b.clusterIP}}"],` + port + `}`,
		`{"clusterIP":"10.96.0.0",` + port + `}`, `{"clusterIP":"10.96.0.1",` + port + `}`, `{"clusterIP":"10.96.255.255",` + port + `}`,
		`{"clusterIP":"10.96.0.010",` + port + `}`, `{"clusterIP":"2001:db8::1",` + port + `}`,
		`{"type":"NodePort","ports":[{"port":80,"nodePort":{{a.nodePort}}}]}`,
		`{"type":"NodePort","ports":[{"port":80,"nodePort":{{a.nodePort}},"protocol":"UDP"}]}`,
		`{"type":"NodePort","ports":[{"port":80,"nodePort":32768}]}`, `{"type":"NodePort","ports":[{"port":80,"nodePort":-1}]}`,
	} {
		steps = append(steps, post(list, services.body(`,"spec":`+spec, "c")), post(list, services.body(`,"spec":`+spec, "c"), "dryRun=All"),
			patch("merge", services.item("b"), `{"spec":`+spec+`}`), patch("strategic", services.item("b"), `{"spec":`+spec+`}`, "dryRun=All"))
	}
	for _, ports := range []string{ // one number for two protocols, twice for one, and swapped
		`{"name":"t","port":80,"nodePort":{{a.nodePort}}},{"name":"u","port":80,"protocol":"UDP","nodePort":{{a.nodePort}}}`,
		`{"name":"t","port":80,"nodePort":{{a.nodePort}}},{"name":"u","port":81,"nodePort":{{a.nodePort}}}`,
		`{"name":"u","port":81,"protocol":"UDP","nodePort":{{a.nodePort}}},{"name":"t","port":80}`, `{"port":82}`,
	} {
		steps = append(steps, patch("merge", services.item("a"), `{"spec":{"ports":[`+ports+`]}}`))
	}
	again := services.body(`,"spec":{"type":"NodePort","clusterIP":"{{first a.clusterIP}}","ports":[{"port":80,"nodePort":{{first a.nodePort}}}]}`, "d")
	return append(steps, put(services.item("a"), services.body(`,"spec":{"type":"NodePort",`+port+`}`, "a")), post(list, again),
		del(services.item("a"), "dryRun=All"), post(list, again), del(services.item("a")), post(list, again, "dryRun=All"), post(list, again),
		patch("merge", services.item("d"), `{"spec":{"type":"ExternalName","externalName":"example.com","clusterIP":null,"clusterIPs":null,"ports":null}}`),
		post(list, services.body(`,"spec":{"clusterIP":"{{first a.clusterIP}}",`+port+`}`, "e")), get(list).accepting(table))
}
