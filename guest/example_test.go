package guest_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ecotone-dev/ecotone/guest"
	"github.com/ecotone-dev/ecotone/guest/guesttest"
)

// A capability is a function from one struct to another, and an export that handles it.
func ExampleHandle() {
	type In struct {
		Name string `json:"name"`
	}
	type Out struct {
		Greeting string `json:"greeting"`
	}
	greet := func(in In) (Out, error) {
		if in.Name == "" {
			return Out{}, guest.Failf("NAME_MISSING", "whom shall I greet?")
		}
		return Out{"hello " + in.Name}, nil
	}
	// In the biome:
	//	//go:wasmexport greet
	//	func greet() int32 { return guest.Handle(doGreet) }
	export := func() int32 { return guest.Handle(greet) }

	host, stop := guesttest.Start()
	defer stop()
	fmt.Println(string(host.Run(export, `{"name":"Ada"}`).Output))
	fmt.Println(host.Run(export, `{"name":""}`).Failure)
	fmt.Println(host.Run(export, `{"nmae":"Ada"}`).Code())
	// Output:
	// {"greeting":"hello Ada"}
	// NAME_MISSING: whom shall I greet?
	// INPUT_INVALID
}

var greet = guest.Capability(func(in struct {
	Name string `json:"name"`
},
) (string, error) {
	return "hello " + in.Name, nil
})

// In a module exportGreet is marked with //go:wasmexport greet.
func exportGreet() int32 { return greet() }

func ExampleCapability() {
	host, stop := guesttest.Start()
	defer stop()
	fmt.Println(string(host.Run(exportGreet, `{"name":"Ada"}`).Output))
	// Output: "hello Ada"
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;")

// A Replacer builds its tables when it is first used.
func init() { guest.Warm(func() { escape.Replace("") }) }

func ExampleWarm() {
	run(nothing, func() error {
		fmt.Println(escape.Replace("1 < 2"))
		return nil
	})
	// Output: 1 &lt; 2
}

// run is for the examples below: it makes a capability of a function and prints its output.
func run(prepare func(*guesttest.Host), do func() error) {
	host, stop := guesttest.Start()
	defer stop()
	prepare(host)
	out := host.Run(func() int32 {
		return guest.Handle(func(struct{}) (struct{}, error) { return struct{}{}, do() })
	}, "{}")
	if out.Failure != nil {
		fmt.Println("failed:", out.Failure)
	}
}

func nothing(*guesttest.Host) {}

func ExampleInput() {
	host, stop := guesttest.Start()
	defer stop()
	shout := func() int32 {
		in, err := guest.Input()
		if err != nil {
			return 1
		}
		if err := guest.Output([]byte(strings.ToUpper(string(in)))); err != nil {
			return 1
		}
		return 0
	}
	fmt.Println(string(host.Run(shout, `"quiet"`).Output))
	// Output: "QUIET"
}

func ExampleInputJSON() {
	host, stop := guesttest.Start()
	defer stop()
	sum := func() int32 {
		var numbers []int
		if err := guest.InputJSON(&numbers); err != nil {
			_ = guest.Fail("NOT_NUMBERS", err.Error())
			return 1
		}
		total := 0
		for _, n := range numbers {
			total += n
		}
		if err := guest.OutputJSON(map[string]int{"sum": total}); err != nil {
			return 1
		}
		return 0
	}
	fmt.Println(string(host.Run(sum, `[1,2,3]`).Output))
	fmt.Println(host.Run(sum, `["one"]`).Code())
	// Output:
	// {"sum":6}
	// NOT_NUMBERS
}

func ExampleFail() {
	host, stop := guesttest.Start()
	defer stop()
	out := host.Run(func() int32 {
		if err := guest.Fail("OUT_OF_MILK", "there is none"); err != nil {
			return 2
		}
		return 1
	}, "null")
	fmt.Println(out.Failure)
	// Output: OUT_OF_MILK: there is none
}

func ExampleLogf() {
	host, stop := guesttest.Start()
	defer stop()
	out := host.Run(func() int32 {
		guest.Logf(guest.LevelWarn, "%d of %d pages are empty", 2, 7)
		return 0
	}, "null")
	fmt.Println(out.Logs[0].Message)
	// Output: 2 of 7 pages are empty
}

func ExampleNow() {
	run(nothing, func() error {
		fmt.Println(guest.Now().Format("2006-01-02"))
		return nil
	})
	// Output: 2026-01-02
}

func ExampleRandom() {
	run(func(h *guesttest.Host) { h.Rand = strings.NewReader("0123456789abcdef") }, func() error {
		id := make([]byte, 4)
		if err := guest.Random(id); err != nil {
			return err
		}
		fmt.Printf("%x\n", id)
		return nil
	})
	// Output: 30313233
}

func ExampleKeys() {
	run(nothing, func() error {
		if err := guest.KV.Put("note/1", []byte("milk")); err != nil {
			return err
		}
		value, err := guest.KV.Get("note/1")
		fmt.Println(string(value), err)
		keys, more, err := guest.KV.List("note/", "", 10)
		fmt.Println(keys, more, err)
		fmt.Println(guest.KV.Delete("note/1"))
		_, err = guest.KV.Get("note/1")
		fmt.Println(errors.Is(err, guest.ENOENT))
		return nil
	})
	// Output:
	// milk <nil>
	// [note/1] false <nil>
	// <nil>
	// true
}

func ExampleKeys_Put() {
	run(nothing, func() error {
		for _, name := range []string{"b", "a", "c"} {
			if err := guest.KV.Put("queue/"+name, []byte("1")); err != nil {
				return err
			}
		}
		keys, more, err := guest.KV.List("queue/", "", 2)
		fmt.Println(keys, more)
		keys, more, err = guest.KV.List("queue/", keys[1], 2)
		fmt.Println(keys, more)
		return err
	})
	// Output:
	// [queue/a queue/b] true
	// [queue/c] false
}

func ExampleKeys_Delete() {
	run(nothing, func() error {
		fmt.Println(errors.Is(guest.KV.Delete("none"), guest.ENOENT))
		return nil
	})
	// Output: true
}

func ExampleKeys_Item() {
	run(func(h *guesttest.Host) { h.KV["k"] = []byte("v") }, func() error {
		item, err := guest.KV.Item("k")
		fmt.Println(string(item.Value), item.Classification, item.Version != "")
		return err
	})
	// Output: v internal true
}

func ExampleWorkspace_ReadAll() {
	run(func(h *guesttest.Host) { h.PutFile("docs/a.txt", "hello") }, func() error {
		data, err := guest.Files.ReadAll("docs/a.txt")
		fmt.Println(string(data))
		return err
	})
	// Output: hello
}

func ExampleWorkspace_Read() {
	run(func(h *guesttest.Host) { h.PutFile("a.txt", "hello") }, func() error {
		c, err := guest.Files.Read("a.txt", 1, 3)
		fmt.Println(string(c.Data), c.Size, c.EOF)
		return err
	})
	// Output: ell 5 false
}

func ExampleWorkspace_Write() {
	run(func(h *guesttest.Host) { h.PutFile("a.txt", "old") }, func() error {
		_, err := guest.Files.Write("a.txt", []byte("new"))
		fmt.Println(errors.Is(err, guest.EREAD))
		if _, err := guest.Files.ReadAll("a.txt"); err != nil {
			return err
		}
		_, err = guest.Files.Write("a.txt", []byte("new"))
		return err
	})
	// Output: true
}

func ExampleWorkspace_Create() {
	run(nothing, func() error {
		_, err := guest.Files.Create("new/file", []byte("1"))
		fmt.Println(err)
		_, err = guest.Files.Create("new/file", []byte("2"))
		fmt.Println(errors.Is(err, guest.EEXIST))
		return nil
	})
	// Output:
	// <nil>
	// true
}

func ExampleWorkspace_Replace() {
	run(nothing, func() error {
		version, err := guest.Files.Create("a", []byte("1"))
		if err != nil {
			return err
		}
		if _, err := guest.Files.Replace("a", version, []byte("2")); err != nil {
			return err
		}
		_, err = guest.Files.Replace("a", version, []byte("3"))
		fmt.Println(errors.Is(err, guest.EVERSION))
		return nil
	})
	// Output: true
}

func ExampleWorkspace_Edit() {
	run(func(h *guesttest.Host) { h.PutFile("a.txt", "one two two") }, func() error {
		if _, err := guest.Files.ReadAll("a.txt"); err != nil {
			return err
		}
		_, err := guest.Files.Edit("a.txt", "two", "three", false)
		var many *guest.AmbiguousError
		if errors.As(err, &many) {
			fmt.Println("it occurs", many.Count, "times")
		}
		done, err := guest.Files.Edit("a.txt", "two", "three", true)
		fmt.Println(done.Count)
		return err
	})
	// Output:
	// it occurs 2 times
	// 2
}

func ExampleWorkspace_Stat() {
	run(func(h *guesttest.Host) { h.PutFile("d/a", "xyz") }, func() error {
		info, err := guest.Files.Stat("d/a")
		fmt.Println(info.Kind, info.Size)
		return err
	})
	// Output: file 3
}

func ExampleWorkspace_List() {
	run(func(h *guesttest.Host) { h.PutFile("b/x", "1"); h.PutFile("a", "22") }, func() error {
		entries, more, err := guest.Files.List(".", "", 0)
		fmt.Println(entries, more)
		return err
	})
	// Output: [{a file 2} {b directory 0}] false
}

func ExampleWorkspace_Move() {
	run(func(h *guesttest.Host) { h.PutFile("a", "1") }, func() error {
		fmt.Println(guest.Files.Copy("a", "b"))
		fmt.Println(errors.Is(guest.Files.Move("a", "b"), guest.EEXIST))
		fmt.Println(guest.Files.Move("a", "c"))
		fmt.Println(guest.Files.Remove("b"))
		_, err := guest.Files.Stat("b")
		fmt.Println(errors.Is(err, guest.ENOENT))
		return nil
	})
	// Output:
	// <nil>
	// true
	// <nil>
	// <nil>
	// true
}

func ExampleWorkspace_Mkdir() {
	run(nothing, func() error {
		fmt.Println(guest.Files.Mkdir("a/b"))
		info, err := guest.Files.Stat("a/b")
		fmt.Println(info.Kind, errors.Is(guest.Files.Mkdir("a"), guest.EEXIST))
		return err
	})
	// Output:
	// <nil>
	// directory true
}

func ExampleWorkspace_Remove() {
	run(func(h *guesttest.Host) { h.PutFile("d/a", "1") }, func() error {
		fmt.Println(errors.Is(guest.Files.Remove("d"), guest.ENOTEMPTY))
		fmt.Println(guest.Files.Remove("d/a"), guest.Files.Remove("d"))
		return nil
	})
	// Output:
	// true
	// <nil> <nil>
}

func ExampleWorkspace_Copy() {
	run(func(h *guesttest.Host) { h.PutFile("a", "1") }, func() error {
		if err := guest.Files.Copy("a", "b"); err != nil {
			return err
		}
		_, err := guest.Files.Write("b", []byte("2")) // a copy was not read
		fmt.Println(errors.Is(err, guest.EREAD))
		return nil
	})
	// Output: true
}

func ExampleWorkspace_Grep() {
	run(func(h *guesttest.Host) {
		h.PutFile("src/a.go", "package a\n\nfunc A() {}\n")
		h.PutFile("b.txt", "func")
	}, func() error {
		matches, more, err := guest.Files.Grep(`^func`, "**/*.go", 10)
		fmt.Println(matches, more)
		return err
	})
	// Output: [{src/a.go 3 func A() {}}] false
}

func ExampleWorkspace_Glob() {
	run(func(h *guesttest.Host) {
		h.PutFile("src/a.go", "")
		h.PutFile("src/deep/b.go", "")
		h.PutFile("c.md", "")
	}, func() error {
		paths, _, err := guest.Files.Glob("src/**/*.go", 10)
		fmt.Println(paths)
		return err
	})
	// Output: [src/a.go src/deep/b.go]
}

func ExampleInvoke() {
	run(func(h *guesttest.Host) {
		h.Children["notes:note.get@1"] = func(in []byte) ([]byte, error) {
			if string(in) != `{"id":"a"}` {
				return nil, errors.New("no such note")
			}
			return []byte(`{"text":"milk"}`), nil
		}
	}, func() error {
		out, err := guest.Invoke("notes:note.get@1", []byte(`{"id":"a"}`))
		fmt.Println(string(out), err)
		_, err = guest.Invoke("notes:note.get@1", []byte(`{"id":"b"}`))
		var child *guest.ChildError
		if errors.As(err, &child) {
			fmt.Println(child.Code, child.Detail)
		}
		_, err = guest.Invoke("admin:all.delete@1", []byte(`{}`))
		fmt.Println(errors.Is(err, guest.EDENIED))
		return nil
	})
	// Output:
	// {"text":"milk"} <nil>
	// GUEST_ERROR no such note
	// true
}

func ExampleInvokeJSON() {
	run(func(h *guesttest.Host) {
		h.Children["math:number.double@1"] = func(in []byte) ([]byte, error) { return []byte("14"), nil }
	}, func() error {
		n, err := guest.InvokeJSON[int]("math:number.double@1", 7)
		fmt.Println(n)
		return err
	})
	// Output: 14
}

func ExampleFetch() {
	run(func(h *guesttest.Host) {
		h.Secrets["token"] = []byte("never seen by a guest")
		h.HTTP = func(req guest.Request) (guest.Response, error) {
			return guest.Response{Status: 200, Headers: guest.Headers{"content-type": "text/plain"}, Body: []byte("hi from " + req.URL)}, nil
		}
	}, func() error {
		resp, err := guest.Fetch(guest.Request{Method: "GET", URL: "https://origin.example/a", Secret: "token"})
		if err != nil {
			return err
		}
		fmt.Println(resp.Status, resp.Headers.Get("Content-Type"), string(resp.Body))
		_, err = guest.Fetch(guest.Request{Method: "GET", URL: "https://origin.example/a", Secret: "other"})
		fmt.Println(errors.Is(err, guest.ESECRET))
		return nil
	})
	// Output:
	// 200 text/plain hi from https://origin.example/a
	// true
}

func ExampleHMAC() {
	run(func(h *guesttest.Host) { h.Secrets["signing"] = []byte("key") }, func() error {
		sum, err := guest.HMAC("signing", []byte("message"))
		fmt.Printf("%x\n", sum[:4])
		return err
	})
	// Output: 6e9ef29b
}

func ExampleAuditQuery() {
	run(func(h *guesttest.Host) {
		h.Audit = func(q guest.Query) (any, error) { return []string{q.Capability}, nil }
	}, func() error {
		rows, err := guest.AuditQuery(guest.Query{Capability: "kb:page.read@1", Limit: 5})
		fmt.Println(string(rows))
		return err
	})
	// Output: ["kb:page.read@1"]
}
