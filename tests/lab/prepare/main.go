// Command prepare writes what a new cluster needs into its state folder: free
// ports (a file for the shell), keys and certificates, and a kubeconfig for
// each user. It needs the standard library only, so that it is always built.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"log"
	"math/big"
	random "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Ports below those that Linux and macOS give to outgoing connections: a port
// of a part that is stopped for a while stays free for it.
const firstPort, lastPort = 15000, 32000

const serviceAccount = "system:serviceaccount:kubevirt:"

// users are the kubeconfigs that are written: name, user, group.
var users = [][3]string{
	{"admin", "admin", "system:masters"},
	{"controllers", "system:kube-controller-manager", ""},
	{"scheduler", "system:kube-scheduler", ""},
	{"kwok", "kwok", "system:masters"},
	{"virt-api", serviceAccount + "kubevirt-apiserver", "system:authenticated"},
	// For virt-controller, which has a role, and for who plays kubelets and
	// virt-handlers, whose roles are several: hence all rights.
	{"virt-controller", serviceAccount + "kubevirt-controller", "system:masters"},
}

var portNames = []string{
	"etcd", "etcd_peer", "apiserver", "controllers", "scheduler", "kwok", "virt_api", "virt_controller",
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("prepare: ")
	if len(os.Args) != 2 {
		log.Fatal("usage: prepare STATE_FOLDER")
	}
	state := os.Args[1]
	pki := filepath.Join(state, "pki")
	must(os.MkdirAll(pki, 0o700))

	ports := freePorts(portNames)
	var shell []byte
	for _, name := range portNames {
		shell = fmt.Appendf(shell, "port_%s=%d\n", name, ports[name])
	}
	must(os.WriteFile(filepath.Join(state, "ports"), shell, 0o600))

	ca := newAuthority("lab-ca", pki, "ca")
	// Of its own: whoever has a certificate of this authority may claim to be
	// anyone towards virt-api.
	proxyCA := newAuthority("lab-front-proxy-ca", pki, "front-proxy-ca")

	loopback := []net.IP{net.IPv4(127, 0, 0, 1)}
	ca.issue("kube-apiserver", "", []string{"localhost", "kubernetes.default.svc"}, loopback).write(pki, "apiserver")
	ca.issue("virt-api.kubevirt.svc", "", []string{"localhost", "virt-api.kubevirt.svc"}, loopback).write(pki, "virt")
	proxyCA.issue("front-proxy-client", "", nil, nil).write(pki, "front-proxy")
	writeServiceAccountKeys(pki)

	server := fmt.Sprintf("https://127.0.0.1:%d", ports["apiserver"])
	for _, user := range users {
		file := filepath.Join(state, user[0]+".kubeconfig")
		must(os.WriteFile(file, kubeconfig(server, ca, ca.issue(user[1], user[2], nil, nil)), 0o600))
	}
}

// freePorts holds each port until all are chosen, so that no two are the same.
func freePorts(names []string) map[string]int {
	ports := map[string]int{}
	for _, name := range names {
		for tries := 0; ; tries++ {
			port := firstPort + random.IntN(lastPort-firstPort)
			listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
			if err == nil {
				defer listener.Close()
				ports[name] = port
				break
			}
			if tries == 100 {
				log.Fatal(err)
			}
		}
	}
	return ports
}

// A pair is a certificate with its key. Elliptic curves: RSA keys would take
// seconds.
type pair struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(name, folder, file string) *pair {
	template := newTemplate(name, "")
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage |= x509.KeyUsageCertSign
	key := newKey()
	authority := sign(template, template, key, key)
	authority.write(folder, file)
	return authority
}

func (authority *pair) issue(name, group string, dns []string, addresses []net.IP) *pair {
	template := newTemplate(name, group)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	template.DNSNames, template.IPAddresses = dns, addresses
	return sign(template, authority.certificate, newKey(), authority.key)
}

func newTemplate(name, group string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	must(err)
	subject := pkix.Name{CommonName: name}
	if group != "" {
		subject.Organization = []string{group}
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(0, 0, 30),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	return key
}

func sign(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) *pair {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	must(err)
	certificate, err := x509.ParseCertificate(der)
	must(err)
	return &pair{certificate, key}
}

func (p *pair) write(folder, name string) {
	must(os.WriteFile(filepath.Join(folder, name+".crt"), p.certificatePEM(), 0o600))
	must(os.WriteFile(filepath.Join(folder, name+".key"), p.keyPEM(), 0o600))
}

func (p *pair) certificatePEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.certificate.Raw})
}

func (p *pair) keyPEM() []byte {
	der, err := x509.MarshalECPrivateKey(p.key)
	must(err)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

func writeServiceAccountKeys(folder string) {
	key := newKey()
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	must(err)
	must(os.WriteFile(filepath.Join(folder, "sa.key"), (&pair{key: key}).keyPEM(), 0o600))
	block := &pem.Block{Type: "PUBLIC KEY", Bytes: public}
	must(os.WriteFile(filepath.Join(folder, "sa.pub"), pem.EncodeToMemory(block), 0o600))
}

func kubeconfig(server string, ca, user *pair) []byte {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: lab
contexts:
- name: lab
  context: {cluster: lab, user: lab}
clusters:
- name: lab
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: lab
  user:
    client-certificate-data: %s
    client-key-data: %s
`, server, encode(ca.certificatePEM()), encode(user.certificatePEM()), encode(user.keyPEM()))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
