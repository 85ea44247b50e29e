// SPDX-License-Identifier: GPL-3.0-or-later
//
// Gates behind a real sshd on the loopback: what travels, a key that is refused, hosts that hang, connections that break.
#include "tests/app/pool/realparts.h"
#include "tests/patience.h"

#include "core/files/atomicfile.h"
#include "core/files/tomlwriter.h"
#include "core/kernel/candidatetext.h"
#include "tests/paths.h"

#include <QTemporaryDir>
#include <QtTest>

#include <csignal>
#include <fstream>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace klineage;
using namespace klineage::gate;
using namespace klineage::gate::test;
namespace fs = std::filesystem;

class TestPoolSsh : public QObject
{
    Q_OBJECT
private slots:
    void initTestCase();
    void init();
    void aTrialOverSshByContent();
    void aRefusedKeyIsSaidAndTheTrialGoesElsewhere();
    void aHostThatSaysNothing();
    void aGateThatHangsLosesItsTrialToAnother();
    void aBrokenConnectionCostsNothing();
    void noGateThere();

private:
    [[nodiscard]] std::unique_ptr<GatePool> pool(const std::string &text) const
    {
        auto file = parsePoolFile(text, "pool.toml");
        if (!file)
            qFatal("%s", file.error().message.c_str());
        const BoardOptions options = file->options();
        return std::make_unique<GatePool>(std::move(file->gates), options);
    }
    [[nodiscard]] std::string entry(const std::string &name, const fs::path &program,
                                    const std::string &more) const
    {
        return "[[gate]]\nname = \"" + name + "\"\nprogram = " + files::tomlString(program.string()) + "\n"
               + more;
    }
    std::unique_ptr<QTemporaryDir> m_folder;
    std::unique_ptr<SshServer> m_server;
    std::unique_ptr<FakeGateFolder> m_far;
    std::unique_ptr<FakeGateFolder> m_near;
};

void TestPoolSsh::initTestCase()
{
    m_folder = std::make_unique<QTemporaryDir>();
    m_server = std::make_unique<SshServer>(m_folder->path().toStdString() + "/ssh");
    if (!m_server->problem().empty())
        QSKIP(m_server->problem().c_str());
}

void TestPoolSsh::init()
{
    static int count = 0;
    const std::string folder = m_folder->path().toStdString() + "/" + std::to_string(++count);
    m_far = std::make_unique<FakeGateFolder>(folder + " it's far");
    m_near = std::make_unique<FakeGateFolder>(folder + "near");
}

void TestPoolSsh::aTrialOverSshByContent()
{
    // The real gate, behind a program that keeps what comes to it.
    const fs::path kept = m_far->path() / "kept";
    const fs::path program = m_far->path() / "a gate";
    writeText(program, "#!/bin/sh\ntee " + shellQuoted(kept.string()) + " | exec "
                           + shellQuoted(klineage::test::programPath("/klineage-gate")) + " \"$@\"\n");
    fs::permissions(program, fs::perms::owner_all);
    const auto gates = pool(
        entry("loopback", program,
              m_server->options(std::vector<std::string>()) + "environment = { WHAT = \"it's $HOME\" }\n"));
    GateRequest request;
    request.workloadDirectory = klineage::test::sourcePath("/workloads/softmax");
    request.candidateText =
        *kernel::readCandidateText(klineage::test::sourcePath("/workloads/softmax/lineages/pocl/K00.cl"));
    request.candidateName = "K00.cl";
    request.withReference = false;
    request.seeds = 1;
    request.minRounds = 3;
    request.profileSeconds = 0.1;
    request.place.platform = "pocl";
    const auto trial = gates->run(request);
    if (!trial && trial.error().message.find("No gate of the pool") != std::string::npos)
        QSKIP(("No OpenCL device: " + trial.error().detail).c_str());
    QVERIFY2(trial, trial ? "" : (trial.error().message + trial.error().detail).c_str());
    QVERIFY2(trial->verdict.status == VerdictStatus::Correct, trial->verdict.message.c_str());
    QCOMPARE(trial->environment.facts.at("gate"), std::string("loopback"));
    QVERIFY(!trial->environment.device.empty());
    // Nothing that was sent names a file of this machine.
    const auto sent = files::readFile(kept, std::size_t{1} << 20);
    QVERIFY(sent);
    QVERIFY(sent->find("__kernel") != std::string::npos);
    QVERIFY(sent->find(klineage::test::sourcePath()) == std::string::npos);
}

void TestPoolSsh::aRefusedKeyIsSaidAndTheTrialGoesElsewhere()
{
    const std::string refused =
        entry("far", m_far->program(), m_server->options(std::vector<std::string>(), false));
    const auto alone = pool(refused)->run(fakeRequest("T0"));
    QVERIFY(!alone);
    QVERIFY2(alone.error().message.find("refused the key") != std::string::npos,
             alone.error().message.c_str());
    QVERIFY(alone.error().detail.find("ssh-copy-id") != std::string::npos);
    const auto both = pool(refused + entry("near", m_near->program(), ""));
    const auto trial = both->run(fakeRequest("T1"));
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    QCOMPARE(trial->environment.facts.at("gate"), std::string("near"));
    QVERIFY(m_far->begun().empty());
}

void TestPoolSsh::aHostThatSaysNothing()
{
    const int listening = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    QCOMPARE(::bind(listening, reinterpret_cast<sockaddr *>(&address), sizeof address), 0);
    QCOMPARE(::listen(listening, 8), 0); // takes connections, and nobody reads them
    QCOMPARE(::getsockname(listening, reinterpret_cast<sockaddr *>(&address), &length), 0);
    const std::string silent = "ssh_options = [\"-F\", \"none\", \"-p\", \""
                               + std::to_string(ntohs(address.sin_port))
                               + "\", \"-o\", \"ConnectTimeout=1\"]\nssh = \"127.0.0.1\"\n";
    const auto alone =
        pool("patience_seconds = 0\n" + entry("far", m_far->program(), silent))->run(fakeRequest("T0"));
    QVERIFY(!alone);
    QVERIFY2(alone.error().message.find("far (127.0.0.1) is not to be had: the host") != std::string::npos,
             (alone.error().message + alone.error().detail).c_str());
    const auto both = pool(entry("far", m_far->program(), silent) + entry("near", m_near->program(), ""));
    const auto trial = both->run(fakeRequest("T1"));
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    ::close(listening);
}

void TestPoolSsh::aGateThatHangsLosesItsTrialToAnother()
{
    const auto gates = pool(entry("far", m_far->program(),
                                  m_server->options(std::vector<std::string>()) + "silent_seconds = 1.5\n")
                            + entry("near", m_near->program(), ""));
    m_far->hold(); // it does not answer a ping either
    Asked asked(*gates, fakeRequest("T0"));
    QTRY_COMPARE(m_far->begun().size(), std::size_t{1});
    const auto trial = asked.result();
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    QCOMPARE(trial->environment.facts.at("gate"), std::string("near"));
    const GateState state = gates->state().gates[0];
    QCOMPARE(state.losses, 1);
    QVERIFY2(state.problem->message.find("hangs") != std::string::npos, state.problem->message.c_str());
}

void TestPoolSsh::aBrokenConnectionCostsNothing()
{
    const auto gates = pool(entry("far", m_far->program(), m_server->options(std::vector<std::string>())));
    m_far->hold();
    Asked asked(*gates, fakeRequest("T0"));
    QTRY_COMPARE(m_far->begun().size(), std::size_t{1});
    ::kill(m_far->begun()[0].second, SIGKILL); // the gate there; ssh ends with it
    QTRY_COMPARE(m_far->begun().size(), std::size_t{2});
    QVERIFY(m_far->begun()[0].second != m_far->begun()[1].second);
    m_far->release();
    QVERIFY(asked.result());
    QCOMPARE(gates->state().gates[0].losses, 1);
    QCOMPARE(gates->state().gates[0].trials, 1);
}

void TestPoolSsh::noGateThere()
{
    const auto trial =
        pool(entry("far", "/nowhere/klineage-gate", m_server->options(std::vector<std::string>())))
            ->run(fakeRequest("T0"));
    QVERIFY(!trial);
    QVERIFY2(trial.error().message.find("no klineage-gate there") != std::string::npos,
             trial.error().message.c_str());
    QVERIFY(trial.error().detail.find("pool deploy") != std::string::npos);
}

QTEST_GUILESS_MAIN(TestPoolSsh)
#include "tst_poolssh.moc"
