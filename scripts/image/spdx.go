package main

// What an SPDX 2.3 document in JSON has of it here.

const (
	document    = "SPDXRef-DOCUMENT"
	topImage    = "SPDXRef-image" // that of all architectures
	noAssertion = "NOASSERTION"
)

type spdxDocument struct {
	SPDX      string         `json:"spdxVersion"`
	License   string         `json:"dataLicense"`
	ID        string         `json:"SPDXID"`
	Name      string         `json:"name"`
	Namespace string         `json:"documentNamespace"` // of this document alone
	Creation  spdxCreation   `json:"creationInfo"`
	Packages  []spdxPackage  `json:"packages"`
	Files     []spdxFile     `json:"files"`
	Relations []spdxRelation `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID        string         `json:"SPDXID"`
	Name      string         `json:"name"`
	Version   string         `json:"versionInfo"`
	Download  string         `json:"downloadLocation"`
	Analyzed  bool           `json:"filesAnalyzed"` // never: files are related to images instead
	Source    string         `json:"sourceInfo,omitempty"`
	Checksums []spdxChecksum `json:"checksums,omitempty"`
	Refs      []spdxRef      `json:"externalRefs,omitempty"`
}

type spdxFile struct {
	ID        string         `json:"SPDXID"`
	Name      string         `json:"fileName"`
	Checksums []spdxChecksum `json:"checksums"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxRef struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelation struct {
	From string `json:"spdxElementId"`
	How  string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

// goModule is a Go module; sum is that of go.sum, which is no checksum that SPDX knows.
func goModule(path, version, sum string) spdxPackage {
	p := spdxPackage{ID: spdxID("module", path, version), Name: path, Version: version, Download: noAssertion, Refs: purl("pkg:golang/" + path + "@" + version)}
	if sum != "" {
		p.Source = "go.sum: " + sum
	}
	return p
}

// purl is a package's URL, by which scanners know it.
func purl(url string) []spdxRef {
	return []spdxRef{{"PACKAGE-MANAGER", "purl", url}}
}
