// SPDX-License-Identifier: GPL-3.0-or-later
//
// The listings in sass/ are what CUDA 13.0's tools printed for sass/scale.cu, compiled by NVRTC for sm_90a.
#include "core/files/atomicfile.h"
#include "core/gate/counters/sass.h"

#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <set>

using namespace klineage;
using namespace klineage::gate::counters;

namespace {

std::string listing(const char *name)
{
    const auto text = files::readFile(std::filesystem::path(SASS_DATA) / name, std::size_t{1} << 20);
    return text ? *text : std::string();
}

} // namespace

class TestSass : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        m_path = qgetenv("PATH");
        qunsetenv("CUDA_PATH");
        qunsetenv("CUDA_HOME");
    }
    void cleanup() { qputenv("PATH", m_path); }

    void nvdisasmIsRead()
    {
        const auto lines = parseSass(listing("nvdisasm.txt"), "scale.cu");
        QVERIFY(lines.size() > 20);
        std::set<int> seen;
        std::uint64_t expected = 0;
        for (const SassLine &line : lines) {
            QCOMPARE(line.kernel, std::string("scale"));
            QCOMPARE(line.offset, expected);
            QVERIFY(!line.text.empty() && line.text.find("/*") == std::string::npos);
            expected += 16;
            seen.insert(line.line);
        }
        QVERIFY(seen.contains(6));
        QVERIFY(seen.contains(11));
        QVERIFY(seen.contains(12));
        QVERIFY(*seen.rbegin() <= 13);
        QVERIFY(std::any_of(lines.begin(), lines.end(),
                            [](const SassLine &l) { return l.line == 11 && l.text.starts_with("FFMA"); }));
    }

    void cuobjdumpIsRead()
    {
        const auto lines = parseSass(listing("cuobjdump.txt"), "scale.cu");
        const auto others = parseSass(listing("nvdisasm.txt"), "scale.cu");
        QCOMPARE(lines.size(), others.size());
        for (std::size_t i = 0; i < lines.size(); ++i) {
            QCOMPARE(lines[i].kernel, others[i].kernel);
            QCOMPARE(lines[i].offset, others[i].offset);
            QCOMPARE(lines[i].line, 0);
        }
    }

    void anyTextIsSurvived()
    {
        QVERIFY(parseSass("", "a.cu").empty());
        QVERIFY(parseSass("/*\n.text.:\n//## File \"\n/*zz*/ NOP ;\n/*0000*/ ;\nFunction : \n", "a.cu").size()
                <= 1);
        const std::string text = listing("nvdisasm.txt");
        for (std::size_t length = 0; length < text.size(); length += 97)
            QVERIFY(parseSass(std::string_view(text).substr(0, length), "scale.cu").size() < 1000);
    }

    void aMissingToolIsSaid()
    {
        const QTemporaryDir empty;
        qputenv("PATH", empty.path().toUtf8());
        const auto tool = findDisassembler();
        if (tool)
            QSKIP("The CUDA Toolkit of this machine has the tools.");
        QCOMPARE(tool.error().code, ErrorCode::Unavailable);
        QVERIFY(tool.error().message.find("cuda-nvdisasm") != std::string::npos);
        QCOMPARE(disassemble({}, "a.cu", 5).error().code, ErrorCode::Unavailable);
    }

    void theToolIsRun_data()
    {
        QTest::addColumn<QByteArray>("script");
        QTest::addColumn<int>("error"); ///< -1: it works
        QTest::newRow("prints") << QByteArray("[ -s \"$3\" ] && cat " SASS_DATA "/nvdisasm.txt") << -1;
        QTest::newRow("fails") << QByteArray("echo no such architecture >&2; exit 1")
                               << static_cast<int>(ErrorCode::Protocol);
        QTest::newRow("hangs") << QByteArray("exec sleep 60") << static_cast<int>(ErrorCode::Timeout);
    }

    void theToolIsRun()
    {
        QFETCH(QByteArray, script);
        QFETCH(int, error);
        const QTemporaryDir folder;
        const std::filesystem::path tool = folder.filePath("nvdisasm").toStdString();
        QVERIFY(files::writeFileAtomic(tool, "#!/bin/sh\n" + script.toStdString() + "\n").has_value());
        std::filesystem::permissions(tool, std::filesystem::perms::owner_all);
        qputenv("PATH", folder.path().toUtf8() + ":" + m_path);
        const std::vector<std::byte> cubin(16);
        const auto lines =
            disassemble(cubin, "scale.cu", error == static_cast<int>(ErrorCode::Timeout) ? 0.2 : 20);
        if (error < 0) {
            QVERIFY2(lines.has_value(), lines ? "" : lines.error().message.c_str());
            QVERIFY(lines->size() > 20);
        } else {
            QVERIFY(!lines.has_value());
            QCOMPARE(static_cast<int>(lines.error().code), error);
        }
    }

private:
    QByteArray m_path;
};

QTEST_GUILESS_MAIN(TestSass)
#include "tst_sass.moc"
