package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// codec knows the types that travel as protobuf.
var codec = newCodec()

type protobufCodec struct {
	scheme     *runtime.Scheme
	serializer *protobuf.Serializer
}

func newCodec() protobufCodec {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	utilruntime.Must(apidiscoveryv2.AddToScheme(scheme))
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return protobufCodec{scheme, protobuf.NewSerializer(scheme, scheme)}
}

// unnamed is the version of objects that say none: discovery's.
var unnamed = schema.GroupVersionKind{Version: "v1"}

// fromProtobuf gives what the same object is as JSON.
func fromProtobuf(data []byte) (any, error) {
	object, kind, err := codec.serializer.Decode(data, &unnamed, nil)
	if err != nil {
		return nil, fmt.Errorf("decode protobuf: %w", err)
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return fromJSON(text)
}

// toProtobuf encodes a JSON object of a known kind.
func toProtobuf(text []byte) ([]byte, error) {
	var meta metav1.TypeMeta
	if err := json.Unmarshal(text, &meta); err != nil {
		return nil, err
	}
	kind := schema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind)
	object, err := codec.scheme.New(kind)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, object); err != nil {
		return nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	var out bytes.Buffer
	err = codec.serializer.Encode(object, &out)
	return out.Bytes(), err
}

func fromJSON(text []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}

// decode turns a body into what encoding/json makes of the same thing, and says
// how it was laid out, which people who use curl see.
func decode(contentType string, body []byte) (value any, layout string) {
	media, _, _ := mime.ParseMediaType(contentType)
	var err error
	switch {
	case len(body) == 0:
		return nil, "empty"
	case media == "application/json":
		value, err = fromJSON(body)
		layout = "json, one line"
		if bytes.Contains(body, []byte("\n  ")) {
			layout = "json, indented"
		}
		if !bytes.HasSuffix(body, []byte("\n")) {
			layout += ", no newline at the end"
		}
	case media == "application/yaml":
		layout = "yaml"
		var text []byte
		if text, err = yaml.YAMLToJSON(body); err == nil {
			value, err = fromJSON(text)
		}
	case strings.HasPrefix(media, protobufMedia):
		layout = "protobuf"
		value, err = fromProtobuf(body)
	default:
		if value, err := fromJSON(body); err == nil && bytes.HasPrefix(body, []byte("{")) {
			return value, "text that is json"
		}
		return string(body), "text"
	}
	if err != nil {
		return fmt.Sprintf("%q", body), layout + ", not decodable: " + err.Error()
	}
	return value, layout
}
