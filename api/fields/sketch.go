package fields

import (
	"encoding/binary"
	"reflect"
	"slices"
	"strings"
	"time"
)

// What outlines append of a value.

func (leafOutline) add(to []byte, of reflect.Value) []byte { return addBit(to, !of.IsZero()) }

func (momentOutline) add(to []byte, of reflect.Value) []byte {
	return addBit(to, !of.Field(0).Interface().(time.Time).IsZero())
}

func addBit(to []byte, bit bool) []byte {
	if bit {
		return append(to, '1')
	}
	return append(to, '0')
}

func (p pointerOutline) add(to []byte, of reflect.Value) []byte {
	if of.IsNil() {
		return append(to, 'n')
	}
	return p.elem.add(append(to, 'p'), of.Elem())
}

func (s structOutline) add(to []byte, of reflect.Value) []byte {
	if of.IsZero() {
		return append(to, 'z')
	}
	to = append(to, 's')
	for i, field := range s {
		if field != nil {
			to = field.add(to, of.Field(i))
		}
	}
	return to
}

func (m mapOutline) add(to []byte, of reflect.Value) []byte {
	if of.IsNil() {
		return append(to, 'n')
	}
	keys := sorted(of.MapKeys())
	to = binary.AppendUvarint(append(to, 'm'), uint64(len(keys)))
	for _, key := range keys {
		to = m.elem.add(addText(to, key.String()), of.MapIndex(key))
	}
	return to
}

// sorted sorts the keys of a map.
func sorted(keys []reflect.Value) []reflect.Value {
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

func addText[Text string | []byte](to []byte, text Text) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

func (bytesOutline) add(to []byte, of reflect.Value) []byte { return addState(to, of) }

func (a atomicOutline) add(to []byte, of reflect.Value) []byte { return addState(to, of) }

// addState tells a map or a list that is nil from an empty one and from others.
func addState(to []byte, of reflect.Value) []byte {
	if of.IsNil() {
		return append(to, 'n')
	}
	return addBit(to, of.Len() > 0)
}

func (ownersOutline) add(to []byte, of reflect.Value) []byte { return addState(to, of) }

func (l listOutline) add(to []byte, of reflect.Value) []byte {
	if of.IsNil() {
		return append(to, 'n')
	}
	to = binary.AppendUvarint(append(to, 'l'), uint64(of.Len()))
	for i := range of.Len() {
		item := of.Index(i)
		if to = l.addKeys(to, item); len(l.keys) > 0 {
			to = l.elem.add(to, item)
		}
	}
	return to
}

// addKeys appends what tells an item from others.
func (l listOutline) addKeys(to []byte, item reflect.Value) []byte {
	if len(l.keys) == 0 {
		return addKey(to, item)
	}
	for _, key := range l.keys {
		to = addKey(to, item.FieldByIndex(key))
	}
	return to
}

func addKey(to []byte, key reflect.Value) []byte {
	if key.Kind() == reflect.String {
		return addText(to, key.String())
	}
	return binary.AppendVarint(to, key.Int())
}
