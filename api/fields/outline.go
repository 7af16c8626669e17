package fields

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// An outline says of an object what decides which fields it has: which ones are set, the keys
// of its maps, and of its lists whatever tells their items apart. Values do not count, so pods
// made from one template have one outline. Two objects with the same outline have the same
// set of fields; the converse need not hold.
type outline interface {
	// add appends the outline of a value. What it appends can be told from what any other
	// value of the type gets, and from its continuation.
	add(to []byte, of reflect.Value) []byte
	// diff appends in what way two values differ, and nothing if they do not: see difference.go.
	diff(to []byte, before, after reflect.Value) ([]byte, bool)
}

// outlines makes the outlines of Go types as a schema describes them.
type outlines struct {
	schema *smdschema.Schema
	known  map[outlined]*outlineLink
}

type outlined struct {
	kind reflect.Type
	name string // in the schema
}

// outlineOf returns the outline of a type, or an error for one that holds what only its JSON tells.
func outlineOf(kind reflect.Type, schema *smdschema.Schema, ref smdschema.TypeRef) (outline, error) {
	o := outlines{schema, map[outlined]*outlineLink{}}
	return o.of(kind, ref)
}

func (o outlines) of(kind reflect.Type, ref smdschema.TypeRef) (outline, error) {
	if kind.Kind() == reflect.Pointer {
		elem, err := o.of(kind.Elem(), ref)
		return pointerOutline{elem}, err
	}
	switch kind {
	case reflect.TypeFor[metav1.Time]():
		return momentOutline{time.Second}, nil
	case reflect.TypeFor[metav1.MicroTime]():
		return momentOutline{time.Microsecond}, nil
	case reflect.TypeFor[metav1.Duration](), reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString]():
		return textOutline{}, nil
	}
	if marshals := reflect.TypeFor[json.Marshaler](); kind.Implements(marshals) || reflect.PointerTo(kind).Implements(marshals) {
		return nil, fmt.Errorf("%s says itself what it is in JSON", kind)
	}
	atom, ok := o.schema.Resolve(ref)
	if !ok {
		return nil, fmt.Errorf("%s is not in the schema", kind)
	}
	switch kind.Kind() {
	case reflect.Struct:
		return o.ofStruct(kind, ref, atom)
	case reflect.Map:
		return o.ofMap(kind, atom)
	case reflect.Slice:
		return o.ofSlice(kind, atom)
	case reflect.Interface, reflect.Array, reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128:
		return nil, fmt.Errorf("%s is not a field of an object", kind)
	default:
		return leafOutline{}, nil
	}
}

// leafOutline is of what has no fields: whether it is its zero value.
type leafOutline struct{}

// textOutline is of a struct that is one number or string in JSON.
type textOutline struct{ leafOutline }

// momentOutline is of a time, which is null in JSON if it is zero, wherever that is.
type momentOutline struct{ unit time.Duration } // of which it is a multiple in JSON

type pointerOutline struct{ elem outline }

// outlineLink stands for an outline that is being made: types may contain themselves.
type outlineLink struct{ outline }

// structOutline is the outlines of a struct's fields, in the order of the type.
type structOutline []outline

func (o outlines) ofStruct(kind reflect.Type, ref smdschema.TypeRef, atom smdschema.Atom) (outline, error) {
	if atom.Map == nil {
		return nil, fmt.Errorf("%s is a struct, but no map in the schema", kind)
	}
	if ref.NamedType == nil {
		return o.fields(kind, ref, atom)
	}
	key := outlined{kind, *ref.NamedType}
	if known := o.known[key]; known != nil {
		return known, nil
	}
	o.known[key] = new(outlineLink)
	fields, err := o.fields(kind, ref, atom)
	o.known[key].outline = fields
	return fields, err
}

func (o outlines) fields(kind reflect.Type, ref smdschema.TypeRef, atom smdschema.Atom) (outline, error) {
	all := make(structOutline, kind.NumField())
	for i := range kind.NumField() {
		field := kind.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		var err error
		switch sf, ok := atom.Map.FindField(name); {
		case name == "-":
			continue
		case name == "" && strings.Contains(options, "inline"):
			all[i], err = o.of(field.Type, ref)
		case ok:
			all[i], err = o.of(field.Type, sf.Type)
		default:
			err = fmt.Errorf("%s.%s is not in the schema", kind, field.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// mapOutline is the keys of a map, sorted, and the outlines of their values.
type mapOutline struct{ elem outline }

func (o outlines) ofMap(kind reflect.Type, atom smdschema.Atom) (outline, error) {
	if atom.Map == nil || kind.Key().Kind() != reflect.String {
		return nil, fmt.Errorf("%s is a map, but not in the schema", kind)
	}
	elem, err := o.of(kind.Elem(), atom.Map.ElementType)
	return mapOutline{elem}, err
}

// bytesOutline is of bytes, which are a string in JSON.
type bytesOutline struct{}

// atomicOutline is of a list whose items nobody owns one by one.
type atomicOutline struct{ elem outline }

// ownersOutline is of managedFields themselves, which nobody owns.
type ownersOutline struct{}

// listOutline is the items of a list: of a scalar its value, of a struct its keys' values and
// its outline.
type listOutline struct {
	keys [][]int // fields of the item; none of a scalar
	elem outline
}

func (o outlines) ofSlice(kind reflect.Type, atom smdschema.Atom) (outline, error) {
	if kind.Elem().Kind() == reflect.Uint8 {
		return bytesOutline{}, nil
	}
	if atom.List == nil {
		return nil, fmt.Errorf("%s is a slice, but no list in the schema", kind)
	}
	if kind.Elem() == reflect.TypeFor[metav1.ManagedFieldsEntry]() {
		return ownersOutline{}, nil
	}
	elem, err := o.of(kind.Elem(), atom.List.ElementType)
	if err != nil {
		return nil, err
	}
	if atom.List.ElementRelationship == smdschema.Atomic {
		return atomicOutline{elem}, nil
	}
	list := listOutline{elem: elem}
	for _, key := range atom.List.Keys {
		field, err := keyField(kind.Elem(), key)
		if err != nil {
			return nil, err
		}
		list.keys = append(list.keys, field)
	}
	if len(list.keys) == 0 && !isKey(kind.Elem()) {
		return nil, fmt.Errorf("%s is a set, but not of strings or numbers", kind)
	}
	return list, nil
}

// keyField finds the field of an item that is one of its keys.
func keyField(item reflect.Type, key string) ([]int, error) {
	if item.Kind() == reflect.Struct {
		for _, field := range reflect.VisibleFields(item) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == key && isKey(field.Type) {
				return field.Index, nil
			}
		}
	}
	return nil, fmt.Errorf("%s has no plain field %s", item, key)
}

// isKey says whether values of a type tell items of a list apart.
func isKey(kind reflect.Type) bool {
	return slices.Contains([]reflect.Kind{reflect.String, reflect.Int32, reflect.Int64}, kind.Kind())
}
