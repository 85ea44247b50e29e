// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/session/compileahead.h"
#include "tests/paths.h"
#include "tests/patience.h"

#include <QtTest>

using namespace klineage;
using namespace klineage::gate;

namespace {

const std::map<std::string, std::int64_t> noTunables;

CompileKey keyOf(const std::string &source)
{
    return {source, noTunables, "compiler", "sm_90a"};
}

std::vector<std::string> noSuchCompiler()
{
    return {QTemporaryDir().filePath("compiler").toStdString()}; // the folder is gone when this returns
}

CompileOutput outputOf(const std::string &log)
{
    CompileOutput output;
    output.ok = true;
    output.log = log;
    output.binary.assign(3, std::byte{7});
    return output;
}

} // namespace

class TestCompileAhead : public QObject
{
    Q_OBJECT
private slots:
    void whatIsMadeAheadWaitsInMemory()
    {
        const CompileCache cache({});
        const CompileCache ahead = cache.ahead();
        cache.store(keyOf("a"), outputOf("ordinary"));
        QVERIFY(!cache.find(keyOf("a"))); // without a folder an ordinary entry is not kept
        ahead.store(keyOf("a"), outputOf("ahead"));
        QVERIFY(!ahead.find(keyOf("a"))); // it is left to the one whose turn it is
        const auto found = cache.find(keyOf("a"));
        QVERIFY(found);
        QCOMPARE(found->log, std::string("ahead"));
        QCOMPARE(found->binary.size(), std::size_t{3});
        QVERIFY(!cache.find(keyOf("a"))); // once
    }

    void onlyAFewWait()
    {
        const CompileCache cache({});
        const CompileCache ahead = cache.ahead();
        for (char source = 'a'; source <= 'z'; ++source)
            ahead.store(keyOf({source}), outputOf({source}));
        std::string waiting;
        for (char source = 'a'; source <= 'z'; ++source) {
            if (const auto found = cache.find(keyOf({source})))
                waiting += found->log;
        }
        QCOMPARE(waiting, std::string("wxyz")); // the last few, each with its own output
    }

    void awaitOfNothingReturnsAtOnce()
    {
        const CompileCache cache({});
        CompileAhead ahead(noSuchCompiler(), cache.ahead());
        QElapsedTimer timer;
        timer.start();
        ahead.await("source", noTunables, 1e8, {});
        ahead.add({"cuda", "source", "a.cu", noTunables}); // waits: the target is not known
        ahead.await("source", noTunables, 1e8, {});
        QVERIFY(timer.elapsed() < patienceMs); // either would wait for a minute at most
        // It was taken out of the queue: with a target there is nothing left that could be compiled.
        ahead.setTarget("sm_90a");
        ahead.await("source", noTunables, 1e8, {});
        QVERIFY(timer.elapsed() < patienceMs);
        QVERIFY(!cache.find({"source", noTunables, {}, "sm_90a"}));
    }

    void aCompilerThatCannotStartIsNoHarm()
    {
        const CompileCache cache({});
        QElapsedTimer timer;
        timer.start();
        {
            CompileAhead ahead(noSuchCompiler(), cache.ahead());
            ahead.setTarget("sm_90a");
            for (const char *source : {"a", "b", "c"})
                ahead.add({"cuda", source, "a.cu", noTunables});
            ahead.await("c", noTunables, 1e8, {});
            ahead.add({"cuda", "d", "d.cu", noTunables}); // still takes what comes
            ahead.await("d", noTunables, 1e8, {});
        }
        QVERIFY(timer.elapsed() < patienceMs);
        for (const char *source : {"a", "b", "c", "d"})
            QVERIFY(!cache.find({source, noTunables, {}, "sm_90a"})); // no output is made up
    }

    void compiledByTheRealCompiler()
    {
        const std::vector<std::string> command = {klineage::test::programPath("/klineage-gate"), "compile"};
        const CompileCache cache({});
        CompilerSession compiler(command, cache);
        const std::string source = "extern \"C\" __global__ void k(float *x) { x[threadIdx.x] = N; }\n";
        const auto probe = compiler.compile({"cuda", "\n", "probe.cu", {}, "sm_90a"}, 60, {});
        if (!probe && probe.error().kind == FailureKind::Unavailable)
            QSKIP("There is no NVRTC on this machine.");
        QVERIFY2(probe, probe ? "" : probe.error().error.message.c_str());
        CompileAhead ahead(command, cache.ahead());
        ahead.setTarget("sm_90a");
        ahead.add({"cuda", source, "k.cu", {{"N", 3}}});
        ahead.add({"cuda", "this is no CUDA", "bad.cu", noTunables});
        const CompileKey key{source, {{"N", 3}}, probe->compiler, "sm_90a"};
        std::optional<CompileOutput> found;
        // The macro asks again after it was told yes, and an entry is given out once.
        QTRY_VERIFY_WITH_TIMEOUT(found || (found = cache.find(key)), patienceMs);
        QVERIFY(found->ok && !found->binary.empty());
        QVERIFY(!cache.find({"this is no CUDA", noTunables, probe->compiler, "sm_90a"}));
    }
};

QTEST_GUILESS_MAIN(TestCompileAhead)
#include "tst_compileahead.moc"
