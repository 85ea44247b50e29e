// SPDX-License-Identifier: GPL-3.0-or-later
// The building blocks of the cards that ship compile alone. NVRTC needs no GPU; without it there is nothing to see.
#include "core/device/backend.h"
#include "core/files/atomicfile.h"
#include "tests/paths.h"

#include <QTest>

#include <filesystem>

using namespace klineage;

class TestBuildingBlocks : public QObject
{
    Q_OBJECT

private slots:
    void compileAlone()
    {
        namespace fs = std::filesystem;
        int blocks = 0;
        for (const fs::directory_entry &card :
             fs::directory_iterator(fs::path(klineage::test::sourcePath()) / "skills")) {
            const fs::path file = card.path() / "building_block.cu";
            if (!fs::exists(file))
                continue;
            const Result<std::string> text = files::readFile(file, std::size_t{1} << 20);
            QVERIFY(text);
            const Result<gate::CompileOutput> output =
                gate::compileCuda(*text, file.filename().string(), {}, "sm_90a");
            if (!output && output.error().code == ErrorCode::Unavailable)
                QSKIP(output.error().message.c_str());
            QVERIFY2(output, output ? "" : output.error().message.c_str());
            QVERIFY2(output->ok, (card.path().filename().string() + ":\n" + output->log).c_str());
            ++blocks;
        }
        QVERIFY(blocks >= 10);
    }
};

QTEST_GUILESS_MAIN(TestBuildingBlocks)
#include "tst_buildingblocks.moc"
