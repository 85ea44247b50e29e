// SPDX-License-Identifier: GPL-3.0-or-later
//
// pool.toml, and the commands that its gates are started with: what is quoted, for whom, and what launchers say when they fail.
#include "core/pool/poolfile.h"
#include "core/process/childprocess.h"

#include <QtTest>

#include <algorithm>

using namespace klineage;
using namespace klineage::gate;

namespace {

const char *const lab = "patience_seconds = 60\n"
                        "[[gate]]\n"
                        "name = \"here\"\n"
                        "devices = [0, 2]\n"
                        "\n"
                        "[[gate]]\n"
                        "name = \"lab\"\n"
                        "ssh = \"me@gpu1\"\n"
                        "ssh_options = [\"-p\", \"2222\"]\n"
                        "program = \"~/a folder/klineage-gate\"\n"
                        "environment = { WHAT = \"it's\" }\n"
                        "\n"
                        "[[gate]]\n"
                        "name = \"batch\"\n"
                        "slurm = \"srun\"\n"
                        "partition = \"gpu\"\n"
                        "constraint = \"h200&nvlink\"\n"
                        "options = [\"--gres=gpu:1\"]\n"
                        "platforms = [\"sm90\"]\n"
                        "count = 2\n";

std::string joined(const std::vector<std::string> &words)
{
    std::string line;
    for (const std::string &word : words)
        line += '<' + word + '>';
    return line;
}

/// What a POSIX shell makes of the line, an argument a line.
std::string readByShell(const std::string &line)
{
    process::ChildOptions options;
    options.command = {"/bin/sh", "-c", "printf '%s\\n' " + line};
    auto child = process::ChildProcess::start(options);
    return child && child->wait(process::Deadline::in(60)) ? child->standardOutput().text : "";
}

} // namespace

class TestPoolFile : public QObject
{
    Q_OBJECT
private slots:
    void aGateForEachDevice();
    void commands();
    void wrongFiles_data();
    void wrongFiles();
    void quotingSurvivesTheShell_data();
    void quotingSurvivesTheShell();
    void wordsOfALauncher();
    void whatLaunchersSay_data();
    void whatLaunchersSay();
    void noPoolIsOneGateHere();
};

void TestPoolFile::aGateForEachDevice()
{
    const auto pool = parsePoolFile(lab, "pool.toml");
    QVERIFY2(pool, pool ? "" : pool.error().message.c_str());
    std::string names;
    for (const GateSpec &gate : pool->gates)
        names += gate.name + ' ';
    QCOMPARE(names, std::string("here:0 here:2 lab batch:1 batch:2 "));
    QCOMPARE(pool->patienceSeconds, 60.0);
    QVERIFY(pool->options().tellsPlaces);
    QCOMPARE(pool->gates[0].silentSeconds, 0.0);
    QCOMPARE(pool->gates[2].silentSeconds, 60.0);
    QCOMPARE(pool->gates[3].startSeconds, 0.0); // a queue takes as long as it takes
    QVERIFY(pool->gates[3].isQueued);
    QVERIFY(pool->gates[3].idleSeconds > 0); // and nobody keeps a node for nothing
}

void TestPoolFile::commands()
{
    auto pool = parsePoolFile(lab, "pool.toml");
    QVERIFY(pool);
    pool->gates[1].program = "/opt/klineage-gate";
    QCOMPARE(joined(commandOf(pool->gates[1], {"serve"})),
             std::string(
                 "<env><CUDA_VISIBLE_DEVICES=2><CUDA_DEVICE_ORDER=PCI_BUS_ID></opt/klineage-gate><serve>"));
    const std::vector<std::string> far = commandOf(pool->gates[2], {"serve"});
    QCOMPARE(joined({far.begin(), far.begin() + 5}), std::string("<ssh><-p><2222><-T><-x>"));
    QVERIFY(std::find(far.begin(), far.end(), "BatchMode=yes") != far.end());
    QCOMPARE(far[far.size() - 3], std::string("--"));
    QCOMPARE(far[far.size() - 2], std::string("me@gpu1"));
    // The shell there reads one word, which holds a script with words of its own.
    QVERIFY(far.back().starts_with("exec /bin/sh -c '"));
    QVERIFY(far.back().find("\"$HOME\"/") != std::string::npos);
    pool->gates[3].program = "klineage-gate";
    QCOMPARE(
        joined(commandOf(pool->gates[3], {"serve"})),
        std::string("<srun><--job-name=klineage-gate><--ntasks=1><--partition=gpu><--constraint=h200&nvlink>"
                    "<--gres=gpu:1><klineage-gate><serve>"));
}

void TestPoolFile::wrongFiles_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("said");
    QTest::newRow("none") << ""
                          << "at least one [[gate]]";
    QTest::newRow("nameless") << "[[gate]]\nssh = \"a\"\n"
                              << "name of its own";
    QTest::newRow("twice") << "[[gate]]\nname = \"a\"\n[[gate]]\nname = \"a\"\n"
                           << "another gate of this name";
    QTest::newRow("an option for a host") << "[[gate]]\nname = \"a\"\nssh = \"-oProxyCommand=x\"\n"
                                          << "begin with '-'";
    QTest::newRow("unknown key") << "[[gate]]\nname = \"a\"\nhost = \"b\"\n"
                                 << "host";
    QTest::newRow("partition without Slurm") << "[[gate]]\nname = \"a\"\npartition = \"b\"\n"
                                             << "slurm";
    QTest::newRow("devices of Slurm") << "[[gate]]\nname = \"a\"\nslurm = \"srun\"\ndevices = [1]\n"
                                      << "Slurm gives";
    QTest::newRow("other scheduler") << "[[gate]]\nname = \"a\"\nslurm = \"qsub\"\n"
                                     << "salloc";
    QTest::newRow("a shell's variable") << "[[gate]]\nname = \"a\"\nenvironment = { \"A;B\" = \"c\" }\n"
                                        << "no name";
}

void TestPoolFile::wrongFiles()
{
    QFETCH(QString, text);
    QFETCH(QString, said);
    const auto pool = parsePoolFile(text.toStdString(), "pool.toml");
    QVERIFY(!pool);
    QVERIFY2(pool.error().message.find(said.toStdString()) != std::string::npos,
             pool.error().message.c_str());
    QVERIFY(pool.error().message.starts_with("pool.toml:"));
}

void TestPoolFile::quotingSurvivesTheShell_data()
{
    QTest::addColumn<QString>("word");
    for (const char *word : {"plain", "", "two words", "it's", "a\"b", "$HOME `id` \\", "a;b&c|d>e", "*?[x]",
                             "~", "-n", "ünï", "'"})
        QTest::newRow(word) << QString::fromUtf8(word);
}

void TestPoolFile::quotingSurvivesTheShell()
{
    QFETCH(QString, word);
    const std::string text = word.toStdString();
    QCOMPARE(readByShell(shellQuoted(text)), text + '\n');
    // Through two shells, as over ssh.
    const std::string inner = "exec printf '%s\\n' " + shellQuoted(text);
    process::ChildOptions options;
    options.command = {"/bin/sh", "-c", "exec /bin/sh -c " + shellQuoted(inner)};
    auto child = process::ChildProcess::start(options);
    QVERIFY(child && child->wait(process::Deadline::in(60)));
    QCOMPARE(child->standardOutput().text, text + '\n');
    const auto back = splitWords("a " + shellQuoted(text) + " b");
    QVERIFY(back);
    QCOMPARE(joined(*back), "<a><" + text + "><b>");
}

void TestPoolFile::wordsOfALauncher()
{
    QCOMPARE(joined(*splitWords("  srun --comment='two words' \"a \\\" b\" c\\ d ")),
             std::string("<srun><--comment=two words><a \" b><c d>"));
    QVERIFY(!splitWords("ssh 'host"));
    QVERIFY(splitWords("")->empty());
    const GateSpec far = specOfLauncher({"/usr/bin/ssh", "host"});
    QVERIFY(far.launcher.empty());
    // No path of this machine goes there.
    QVERIFY(commandOf(far, {"serve"}).back().find(deployedFolder) != std::string::npos);
    QVERIFY(specOfLauncher({"srun", "-n1"}).isQueued);
    QCOMPARE(joined(specOfLauncher({"env", "A=B"}).launcher), std::string("<env><A=B>"));
}

void TestPoolFile::whatLaunchersSay_data()
{
    QTest::addColumn<QString>("said");
    QTest::addColumn<int>("exitCode");
    QTest::addColumn<QString>("message");
    QTest::addColumn<bool>("isFinal");
    QTest::newRow("key") << "me@gpu1: Permission denied (publickey)." << 255 << "refused the key" << true;
    QTest::newRow("host key") << "Host key verification failed." << 255 << "host key" << true;
    QTest::newRow("name") << "ssh: Could not resolve hostname gpu1: unknown" << 255 << "no host of that name"
                          << true;
    QTest::newRow("down") << "ssh: connect to host gpu1 port 22: Connection refused" << 255
                          << "refused the connection" << false;
    QTest::newRow("hangs") << "Timeout, server gpu1 not responding." << 255 << "stopped answering" << false;
    QTest::newRow("no gate") << "sh: 1: exec: klineage-gate: not found" << 127 << "no klineage-gate there"
                             << true;
    QTest::newRow("old system") << "klineage-gate: /lib/libc.so.6: version `GLIBC_2.36' not found" << 1
                                << "newer C library" << true;
    QTest::newRow("drained while it ran")
        << "srun: error: Node failure on node1" << 1 << "lost the node" << false;
    QTest::newRow("something else") << "a riddle" << 3 << "ended before it answered" << false;
}

void TestPoolFile::whatLaunchersSay()
{
    QFETCH(QString, said);
    QFETCH(int, exitCode);
    QFETCH(QString, message);
    QFETCH(bool, isFinal);
    GateSpec spec;
    spec.name = "lab";
    spec.where = "gpu1";
    spec.shell = {"ssh", "gpu1"};
    const GateProblem problem =
        explainEnd(spec, exitCode, "exit code " + std::to_string(exitCode), said.toStdString());
    QVERIFY2(problem.error.message.find(message.toStdString()) != std::string::npos,
             problem.error.message.c_str());
    QVERIFY(problem.error.message.find("lab") != std::string::npos);
    QVERIFY(problem.error.detail.find(said.toStdString()) != std::string::npos);
    QCOMPARE(problem.isFinal, isFinal);
}

void TestPoolFile::noPoolIsOneGateHere()
{
    qputenv("XDG_CONFIG_HOME", "/proc/nonexistent");
    const auto here = choosePool("", "", "/proc/nonexistent");
    QVERIFY(here);
    QCOMPARE(here->gates.size(), std::size_t{1});
    QVERIFY(!here->options().tellsPlaces);
    QVERIFY(!choosePool("ssh host", "pool.toml", {}));
    QCOMPARE(choosePool("", "/proc/nonexistent/pool.toml", {}).error().code, ErrorCode::NotFound);
}

QTEST_GUILESS_MAIN(TestPoolFile)
#include "tst_poolfile.moc"
