//go:build linux

package main

// etcdName is the contender that others are compared with too.
const etcdName = "etcd"
