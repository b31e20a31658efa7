package kube

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// authority signs the certificates of one cluster.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// pair is a certificate and its key, PEM.
type pair struct{ cert, key []byte }

// template is valid for long enough that a test may set its clock forward.
func template(name pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{SerialNumber: serial, Subject: name,
		NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: time.Now().AddDate(10, 0, 0),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}, nil
}

func newAuthority() (*authority, error) {
	self, err := template(pkix.Name{CommonName: "kube-ca"})
	if err != nil {
		return nil, err
	}
	self.IsCA, self.BasicConstraintsValid, self.KeyUsage = true, true, x509.KeyUsageCertSign
	a := &authority{cert: self}
	signed, err := a.sign(self)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(signed.cert)
	if a.cert, err = x509.ParseCertificate(block.Bytes); err != nil {
		return nil, err
	}
	a.pem = signed.cert
	return a, nil
}

// sign makes a key and a certificate for it. The first one is the authority's own.
func (a *authority) sign(c *x509.Certificate) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	if a.key == nil {
		a.key = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return pair{}, fmt.Errorf("sign certificate of %s: %w", c.Subject.CommonName, err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return pair{}, err
	}
	return pair{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})}, nil
}

// client certifies a user of some groups.
func (a *authority) client(user string, groups []string) (pair, error) {
	c, err := template(pkix.Name{CommonName: user, Organization: groups})
	if err != nil {
		return pair{}, err
	}
	return a.sign(c)
}

// server certifies who answers on the addresses.
func (a *authority) server(name string, addresses ...string) (pair, error) {
	c, err := template(pkix.Name{CommonName: name})
	if err != nil {
		return pair{}, err
	}
	c.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	for _, address := range addresses {
		c.IPAddresses = append(c.IPAddresses, net.ParseIP(address))
	}
	return a.sign(c)
}

// writeSecrets makes what the programs of the control plane prove themselves with.
func (c *Cluster) writeSecrets() (err error) {
	if c.ca, err = newAuthority(); err != nil {
		return err
	}
	server, err := c.ca.server("kube-apiserver", c.host, "127.0.0.1", serviceIP)
	if err != nil {
		return err
	}
	accounts, err := c.ca.server("service-accounts") // its key signs tokens
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"ca.crt": c.ca.pem, "apiserver.crt": server.cert, "apiserver.key": server.key,
		"accounts.crt": accounts.cert, "accounts.key": accounts.key,
		"tokens.csv": []byte(c.token + ",admin,admin,system:masters\n"),
	} {
		if err := os.WriteFile(c.path(name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
