// Package fields says who owns which field of an object: its managedFields, as upstream's field
// manager makes them, for a fraction of the CPU.
//
// Upstream compares objects field by field, by reflection and the schema, in every write. Here
//
//   - what a client's object is to upstream's merge library is made cheaper (types.go, value.go):
//     it is not checked against the schema that was made from its Go type, and what is equal in two
//     of them is passed over;
//   - and what the field manager made of an object, or of a change, is remembered for others that
//     are alike (owners.go): created from one template, or changed in the same fields. Objects are
//     alike if they have one outline (outline.go), changes if they have one difference
//     (difference.go), which say which fields there are and not what is in them.
//
// Whatever is not told for certain is left to upstream. Tests compare with it over random objects.
//
// There are no goroutines here; everything may be called from any.
package fields
