// SPDX-License-Identifier: GPL-3.0-or-later
//
// The verbs of `klineage-cli pool`, with the real gate behind a real sshd: status, check, deploy, batch.
#include "tests/app/pool/realparts.h"
#include "tests/patience.h"

#include "core/files/atomicfile.h"
#include "core/files/tomlwriter.h"
#include "tests/paths.h"

#include <nlohmann/json.hpp>

#include <QTemporaryDir>
#include <QtTest>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <set>

using namespace klineage;
using namespace klineage::gate;
using namespace klineage::gate::test;
namespace fs = std::filesystem;
using nlohmann::json;

class TestPoolCli : public QObject
{
    Q_OBJECT
private slots:
    void initTestCase();
    void statusAndCheckSayWhatIsThere();
    void checkSaysWhatIsWrong();
    void aHostIsAskedForItsLoadOnce();
    void deployBringsAGate();
    void deployBringsWhatAToolkitHas();
    void aToolkitThatLacksSomethingIsSaid();
    void batchGoesOverAllGates();

private:
    struct Ran {
        int status = -1;
        std::string out;
        std::string err;
    };
    [[nodiscard]] Ran cli(std::vector<std::string> arguments) const;
    [[nodiscard]] std::vector<std::string> deploy(const std::vector<std::string> &more) const;
    [[nodiscard]] fs::path standIn() const;
    [[nodiscard]] fs::path path(const char *name) const
    {
        return fs::path(m_folder.path().toStdString()) / name;
    }
    QTemporaryDir m_folder;
    std::unique_ptr<SshServer> m_server;
};

TestPoolCli::Ran TestPoolCli::cli(std::vector<std::string> arguments) const
{
    process::ChildOptions options;
    options.command = {klineage::test::programPath("/klineage-cli")};
    options.command.insert(options.command.end(), arguments.begin(), arguments.end());
    options.workingDirectory = klineage::test::sourcePath();
    options.environment = {{"XDG_CONFIG_HOME", path("config").string()}, {"HOME", path("home").string()}};
    if (const char *programs = std::getenv("PATH"); programs && fs::exists(path("bin")))
        options.environment.emplace_back("PATH", path("bin").string() + ":" + programs);
    auto child = process::ChildProcess::start(options);
    if (!child)
        return {};
    const auto status = child->wait(process::Deadline::in(patienceSeconds * 5));
    return {status ? status->exitCode : -1, child->standardOutput().text, child->standardError().text};
}

void TestPoolCli::initTestCase()
{
    fs::create_directories(path("home"));
    m_server = std::make_unique<SshServer>(path("ssh"));
    if (!m_server->problem().empty())
        QSKIP(m_server->problem().c_str());
    writeText(path("pool.toml"), "[[gate]]\nname = \"near\"\n[[gate]]\nname = \"far\"\nprogram = '"
                                     + klineage::test::programPath("/klineage-gate") + "'\n"
                                     + m_server->options(std::vector<std::string>()));
}

void TestPoolCli::statusAndCheckSayWhatIsThere()
{
    for (const char *verb : {"status", "check"}) {
        const Ran ran = cli({"pool", verb, "--pool", path("pool.toml"), "--json"});
        QVERIFY2(ran.status == 0, ran.err.c_str());
        const json out = json::parse(ran.out);
        QCOMPARE(out["gates"].size(), std::size_t{2});
        QCOMPARE(out["gates"][0]["name"], json("near"));
        QCOMPARE(out["gates"][1]["kind"], json("ssh"));
        QCOMPARE(out["gates"][0]["devices"], out["gates"][1]["devices"]);
        QVERIFY(out["gates"][1]["error"].is_null());
    }
}

void TestPoolCli::checkSaysWhatIsWrong()
{
    writeText(path("wrong.toml"),
              "[[gate]]\nname = \"far\"\n" + m_server->options(std::vector<std::string>(), false));
    const Ran ran = cli({"pool", "check", "--pool", path("wrong.toml")});
    QCOMPARE(ran.status, 1);
    QVERIFY2(ran.out.find("refused the key") != std::string::npos, ran.out.c_str());
    writeText(path("unread.toml"), "[[gate]]\nname = 3\n");
    for (const char *verb : {"status", "check"})
        QCOMPARE(cli({"pool", verb, "--pool", path("unread.toml")}).status, 2);
    QCOMPARE(cli({"pool", "status", "--pool", path("nowhere.toml")}).status, 2);
}

/// Both gates of a host, and one login for its load.
void TestPoolCli::aHostIsAskedForItsLoadOnce()
{
    writeText(path("two.toml"), "[[gate]]\nname = \"far\"\ndevices = [0, 1]\nprogram = '" + standIn().string()
                                    + "'\n" + m_server->options(std::vector<std::string>()));
    fs::create_directories(path("bin"));
    writeText(path("bin") / "ssh", "#!/bin/sh\nfor word; do :; done\necho \"$word\" >>"
                                       + shellQuoted((path("bin") / "log").string()) + "\nexec "
                                       + shellQuoted(installed("ssh")) + " \"$@\"\n");
    fs::permissions(path("bin") / "ssh", fs::perms::owner_all);
    const Ran ran = cli({"pool", "status", "--pool", path("two.toml"), "--json"});
    const auto log = files::readFile(path("bin") / "log", std::size_t{1} << 20);
    fs::remove_all(path("bin"));
    QVERIFY2(ran.status == 0, ran.err.c_str());
    const json gates = json::parse(ran.out)["gates"];
    QCOMPARE(gates.size(), std::size_t{2});
    QCOMPARE(gates[1]["name"], json("far:1"));
    QVERIFY2(gates[1]["load"].get<std::string>().starts_with("load "), ran.out.c_str());
    QCOMPARE(gates[0]["load"], gates[1]["load"]);
    QVERIFY(log);
    QCOMPARE(std::count(log->begin(), log->end(), '\n'),
             std::ptrdiff_t{3}); // the load, and the devices of each gate
}

/// A program that only says which devices it has, and keeps what it was started with.
fs::path TestPoolCli::standIn() const
{
    fs::create_directories(path("a gate"));
    const fs::path program = path("a gate") / "stand-in";
    writeText(program, "#!/bin/sh\ncase $1 in\n--version) echo 1 ;;\n"
                       "devices) env >\"$HOME/environment\"; echo '{\"devices\":[]}' ;;\nesac\n");
    fs::permissions(program, fs::perms::owner_all);
    return program;
}

std::vector<std::string> TestPoolCli::deploy(const std::vector<std::string> &more) const
{
    std::vector<std::string> words = {"pool", "deploy", SshServer::user() + "@127.0.0.1", "--json"};
    for (const std::string &word : m_server->options())
        words.push_back("--ssh-option=" + word);
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

void TestPoolCli::deployBringsAGate()
{
    const std::vector<std::string> words = deploy({});
    const Ran ran = cli(words);
    QVERIFY2(ran.status == 0, ran.err.c_str());
    const json out = json::parse(ran.out);
    QVERIFY(!out["devices"].empty());
    QVERIFY(fs::exists(path("ssh") / "home" / deployedFolder / "klineage-gate"));
    // The entry that it proposes works.
    writeText(path("deployed.toml"), out["entry"].get<std::string>());
    const Ran checked = cli({"pool", "check", "--pool", path("deployed.toml")});
    QVERIFY2(checked.status == 0, checked.out.c_str());
    // A second time replaces it.
    QCOMPARE(cli(words).status, 0);
}

/// Of a toolkit laid out as NVIDIA's packages do, the gate there gets what it loads, and finds it.
void TestPoolCli::deployBringsWhatAToolkitHas()
{
    const fs::path toolkit = path("a toolkit");
    for (const char *folder : {"lib64", "extras/CUPTI/lib64", "include/cccl/cub", "bin"})
        fs::create_directories(toolkit / folder);
    for (const char *file : {"lib64/libnvrtc.so.13.0.88", "lib64/libnvrtc.alt.so.13",
                             "lib64/libnvrtc-builtins.so.13.0", "extras/CUPTI/lib64/libcupti.so.13",
                             "extras/CUPTI/lib64/libnvperf_host.so", "lib64/libcublas.so.13",
                             "include/cuda_fp16.h", "include/cccl/cub/cub.cuh", "bin/nvdisasm", "bin/nvcc"})
        writeText(toolkit / file, file);
    fs::create_symlink("libnvrtc.so.13.0.88", toolkit / "lib64/libnvrtc.so.13");
    const fs::path program = standIn();
    writeText(program.parent_path() / "libklineage-cub.so", "cub");
    const Ran ran = cli(deploy({"--with-cuda", "--toolkit", toolkit, "--program", program}));
    QVERIFY2(ran.status == 0, ran.err.c_str());
    const fs::path there = path("ssh") / "home" / deployedFolder;
    std::set<std::string> files;
    for (const auto &entry : fs::recursive_directory_iterator(there)) {
        if (!entry.is_directory())
            files.insert(entry.path().lexically_relative(there).string());
    }
    const std::set<std::string> expected = {"klineage-gate",
                                            "libklineage-cub.so",
                                            "cuda/lib64/libnvrtc.so.13",
                                            "cuda/lib64/libnvrtc-builtins.so.13.0",
                                            "cuda/lib64/libcupti.so.13",
                                            "cuda/lib64/libnvperf_host.so",
                                            "cuda/include/cuda_fp16.h",
                                            "cuda/include/cccl/cub/cub.cuh",
                                            "cuda/bin/nvdisasm"};
    QCOMPARE(files, expected);
    QCOMPARE(*files::readFile(there / "cuda/lib64/libnvrtc.so.13", 100),
             std::string("lib64/libnvrtc.so.13.0.88"));
    // Asked for its devices it was started as it is for trials.
    const auto environment = files::readFile(path("ssh") / "home" / "environment", std::size_t{1} << 20);
    QVERIFY(environment);
    QVERIFY2(environment->find("CUDA_PATH=" + (there / "cuda").string() + "\n") != std::string::npos,
             environment->c_str());
    QVERIFY2(environment->find("LD_LIBRARY_PATH=" + (there / "cuda/lib64").string()) != std::string::npos,
             environment->c_str());
}

void TestPoolCli::aToolkitThatLacksSomethingIsSaid()
{
    const fs::path toolkit = path("half a toolkit");
    fs::create_directories(toolkit / "lib64");
    writeText(toolkit / "lib64/libnvrtc.so.13", "");
    writeText(toolkit / "lib64/libnvrtc-builtins.so.13.0", "");
    const Ran ran = cli(deploy({"--with-cuda", "--toolkit", toolkit, "--program", standIn()}));
    QCOMPARE(ran.status, 2);
    QVERIFY2(ran.err.find("half a toolkit: it lacks CUPTI (libcupti.so), headers (include/cuda_fp16.h).")
                 != std::string::npos,
             ran.err.c_str());
}

/// With gates that judge nothing; tst_poolssh has the real one over ssh.
void TestPoolCli::batchGoesOverAllGates()
{
    const FakeGateFolder near(path("near"));
    const FakeGateFolder far(path("it's far"));
    writeText(path("fakes.toml"),
              "[[gate]]\nname = \"near\"\nprogram = " + files::tomlString(near.program().string())
                  + "\n[[gate]]\nname = \"far\"\nprogram = " + files::tomlString(far.program().string())
                  + "\n" + m_server->options(std::vector<std::string>()));
    std::string lines;
    for (int i = 0; i < 4; ++i)
        lines += json{{"id", "T" + std::to_string(i)},
                      {"workload", "workloads/softmax"},
                      {"candidate", "workloads/softmax/lineages/pocl/K00.cl"}}
                     .dump()
                 + "\n";
    writeText(path("in.jsonl"), lines);
    const std::vector<std::string> words = {
        "pool",  "batch", path("in.jsonl"), "--out", path("out.jsonl"), "--pool", path("fakes.toml"),
        "--json"};
    near.hold(); // until each has one
    far.hold();
    auto running = std::async(std::launch::async, [&] { return cli(words); });
    const bool bothBegan =
        QTest::qWaitFor([&] { return near.begun().size() == 1 && far.begun().size() == 1; }, patienceMs);
    near.release();
    far.release();
    const Ran ran = running.get();
    QVERIFY2(bothBegan && ran.status == 0, ran.err.c_str());
    const json out = json::parse(ran.out);
    QCOMPARE(out["done"], json(4));
    QCOMPARE(out["gates"][0]["trials"].get<int>() + out["gates"][1]["trials"].get<int>(), 4);
    QVERIFY(out["gates"][1]["trials"].get<int>() > 0);
    const auto written = files::readFile(path("out.jsonl"), std::size_t{16} << 20);
    QVERIFY(written && written->find("\"gate\":\"far\"") != std::string::npos);
    // Again: there is nothing to do.
    QCOMPARE(json::parse(cli(words).out)["skipped"], json(4));
    QCOMPARE(near.begun().size() + far.begun().size(), std::size_t{4});
}

QTEST_GUILESS_MAIN(TestPoolCli)
#include "tst_poolcli.moc"
