// Package topology decides which addresses pods of a topology get. A topology is a rule of people: pods that a selector matches have
// addresses of certain subnets or ranges of them, for as long as they are there (Elastic), for a while after them (Sticky), or as long
// as their StatefulSet is there (Fixed).
//
// Classify says to which topology a new pod belongs and in which zones it can run. Choose says which address it gets once it is on a
// node. An address that outlives its pod has a claim; Next says what becomes of one, and what the cloud is asked for. Cover says which
// prefixes are reserved in the cloud, so that nobody else gets such addresses.
//
// All of it is values: nothing here calls a cloud or an API server, or reads a clock. DESIGN.md says how they hang together.
package topology
