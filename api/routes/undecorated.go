package routes

import (
	"reflect"

	generic "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// undecorated says whether a registry answers with objects as they are stored.
// That of services fills in fields of old objects when it reads them, by a
// decorator in its generic store, which is a field of it.
func undecorated(storage rest.Storage) bool {
	if store, ok := storage.(*generic.Store); ok {
		return store.Decorator == nil
	}
	registry := reflect.Indirect(reflect.ValueOf(storage))
	if registry.Kind() != reflect.Struct {
		return false
	}
	for i := range registry.NumField() {
		field := registry.Field(i)
		if field.Type() == reflect.TypeFor[*generic.Store]() && !field.IsNil() {
			return field.Elem().FieldByName("Decorator").IsNil()
		}
	}
	return false
}
