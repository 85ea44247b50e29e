// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/backend.h"
#include "core/device/cuda/cubinglobals.h"

#include "elffixture.h"

#include <QtTest>

#include <algorithm>

using namespace klineage;
using namespace klineage::gate;

namespace {

Result<std::vector<cuda::DeviceGlobal>> read(const std::string &file)
{
    // Memory of exactly this size, so that a sanitizer sees a read behind it.
    const std::vector<std::byte> bytes(reinterpret_cast<const std::byte *>(file.data()),
                                       reinterpret_cast<const std::byte *>(file.data()) + file.size());
    return cuda::globalsOf(bytes);
}

QStringList namesOf(const std::vector<cuda::DeviceGlobal> &globals)
{
    QStringList names;
    for (const cuda::DeviceGlobal &global : globals)
        names << QString::fromStdString(global.name);
    names.sort();
    return names;
}

} // namespace

class TestCubinGlobals : public QObject
{
    Q_OBJECT
private slots:
    void writableVariables();
    void addressesOfTheLoaderAreNoChange();
    void notAnElf_data();
    void notAnElf();
    void cutAnywhere();
    void anyByteChanged();
    void outOfBounds();
    void compiledModules_data();
    void compiledModules();
    void refusedModules_data();
    void refusedModules();
};

void TestCubinGlobals::writableVariables()
{
    const auto globals = read(test::smallElf());
    QVERIFY2(globals, globals ? "" : globals.error().message.c_str());
    QCOMPARE(namesOf(*globals), (QStringList{"counter", "seen", "table"}));
    for (const cuda::DeviceGlobal &global : *globals) {
        const bool counts = global.name == "counter";
        QCOMPARE(global.initial.size(), std::size_t(counts ? 8 : 4));
        QCOMPARE(std::to_integer<int>(global.initial.front()), counts ? 7 : global.name == "table" ? 1 : 0);
        QVERIFY(global.unchanged(global.initial));
    }
}

void TestCubinGlobals::addressesOfTheLoaderAreNoChange()
{
    const std::vector<std::byte> initial(20);
    const cuda::DeviceGlobal global{"pointers", initial, {8, 16}};
    auto loaded = initial;
    loaded[8] = loaded[15] = loaded[19] = std::byte{1};
    QVERIFY(global.unchanged(loaded));
    loaded[7] = std::byte{1};
    QVERIFY(!global.unchanged(loaded));
    QVERIFY(!global.unchanged(std::span(initial).first(19)));
}

void TestCubinGlobals::notAnElf_data()
{
    QTest::addColumn<QByteArray>("bytes");
    QTest::newRow("nothing") << QByteArray();
    QTest::newRow("text") << QByteArray(200, 'x');
    QTest::newRow("zeros") << QByteArray(200, '\0');
    QByteArray elf = QByteArray::fromStdString(test::smallElf());
    elf[EI_CLASS] = ELFCLASS32;
    QTest::newRow("32 bits") << elf;
    elf[EI_CLASS] = ELFCLASS64;
    elf[EI_DATA] = ELFDATA2MSB;
    QTest::newRow("big-endian") << elf;
}

void TestCubinGlobals::notAnElf()
{
    QFETCH(QByteArray, bytes);
    const auto globals = read(bytes.toStdString());
    QVERIFY(!globals);
    QCOMPARE(globals.error().code, ErrorCode::InvalidInput);
}

void TestCubinGlobals::cutAnywhere()
{
    const std::string file = test::smallElf();
    for (std::size_t size = 0; size < file.size();
         ++size) // the section headers come last, so every cut is noticed
        QVERIFY2(!read(file.substr(0, size)), qPrintable(QString::number(size)));
}

void TestCubinGlobals::anyByteChanged()
{
    const std::string file = test::smallElf();
    for (std::size_t at = 0; at < file.size(); ++at) {
        for (const unsigned char value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
            std::string changed = file;
            changed[at] = static_cast<char>(value);
            const auto globals = read(changed);
            std::size_t total = 0;
            for (const cuda::DeviceGlobal &global : globals.value_or(std::vector<cuda::DeviceGlobal>()))
                total += global.initial.size();
            QVERIFY(total <= (std::size_t{64} << 20));
        }
    }
}

void TestCubinGlobals::outOfBounds()
{
    Elf64_Ehdr head;
    std::string file = test::smallElf();
    std::memcpy(&head, file.data(), sizeof head);
    const auto patch = [&](std::size_t section, auto change) {
        std::string changed = file;
        Elf64_Shdr header;
        char *place = changed.data() + head.e_shoff + section * sizeof header;
        std::memcpy(&header, place, sizeof header);
        change(header);
        std::memcpy(place, &header, sizeof header);
        return read(changed).has_value();
    };
    QVERIFY(patch(1, [](Elf64_Shdr &) {}));
    QVERIFY(!patch(1, [](Elf64_Shdr &header) { header.sh_offset = ~std::uint64_t{0} - 3; }));
    QVERIFY(!patch(1, [](Elf64_Shdr &header) { header.sh_size = 4; })); // smaller than its variable
    QVERIFY(!patch(4, [](Elf64_Shdr &header) { header.sh_size = ~std::uint64_t{0}; }));
    QVERIFY(!patch(4, [](Elf64_Shdr &header) { header.sh_offset = ~std::uint64_t{0} - 8; }));
    QVERIFY(!patch(4, [](Elf64_Shdr &header) { header.sh_link = 77; }));
    QVERIFY(!patch(5, [](Elf64_Shdr &header) { header.sh_size = 1; })); // names end before the symbols'
}

void TestCubinGlobals::compiledModules_data()
{
    QTest::addColumn<QString>("declaration");
    QTest::addColumn<QString>("use");
    QTest::addColumn<QStringList>("names");
    QTest::newRow("none") << ""
                          << "y[0] = 1;" << QStringList{};
    QTest::newRow("counter") << "__device__ int counter;"
                             << "y[0] = atomicAdd(&counter, 1);" << QStringList{"counter"};
    QTest::newRow("initialised") << "__device__ float scale = 2.5f;"
                                 << "y[0] = scale; scale += 1;" << QStringList{"scale"};
    QTest::newRow("constant") << "__constant__ float table[4] = {1, 2, 3, 4};"
                              << "y[0] = table[i & 3];" << QStringList{"table"};
    QTest::newRow("shared") << "__shared__ float tile[32];"
                            << "tile[i & 31] = i; __syncthreads(); y[0] = tile[0];" << QStringList{};
}

void TestCubinGlobals::compiledModules()
{
    QFETCH(QString, declaration);
    QFETCH(QString, use);
    const std::string source =
        (declaration + "\nextern \"C\" __global__ void k(float *y, int i) { " + use + " }\n").toStdString();
    const auto compiled = compileCuda(source, "k.cu", {}, "sm_90a");
    if (!compiled && compiled.error().code == ErrorCode::Unavailable)
        QSKIP("no NVRTC");
    QVERIFY2(compiled, compiled ? "" : compiled.error().message.c_str());
    QVERIFY2(compiled->ok, compiled->log.c_str());
    const auto globals = cuda::globalsOf(compiled->binary);
    QVERIFY2(globals, globals ? "" : globals.error().message.c_str());
    QTEST(namesOf(*globals), "names");
}

void TestCubinGlobals::refusedModules_data()
{
    QTest::addColumn<QString>("declaration");
    QTest::addColumn<QString>("use");
    QTest::addColumn<QString>("why");
    QTest::newRow("heap") << ""
                          << "float *kept = (float *)malloc(4 * i); kept[0] = i; y[0] = kept[i]; free(kept);"
                          << "heap";
    QTest::newRow("heap, aligned")
        << "extern \"C\" __device__ void *__cuda_syscall_aligned_malloc(size_t, size_t);"
        << "y[0] = *(float *)__cuda_syscall_aligned_malloc(4 * i, 256);"
        << "heap";
    QTest::newRow("large") << "__device__ float many[18 << 20];"
                           << "y[0] = many[i]++;"
                           << "64 MiB";
}

void TestCubinGlobals::refusedModules()
{
    QFETCH(QString, declaration);
    QFETCH(QString, use);
    QFETCH(QString, why);
    const std::string source =
        (declaration + "\nextern \"C\" __global__ void k(float *y, int i) { " + use + " }\n").toStdString();
    const auto compiled = compileCuda(source, "k.cu", {}, "sm_90a");
    if (!compiled && compiled.error().code == ErrorCode::Unavailable)
        QSKIP("no NVRTC");
    QVERIFY2(compiled && compiled->ok, compiled ? compiled->log.c_str() : compiled.error().message.c_str());
    const auto globals = cuda::globalsOf(compiled->binary);
    QVERIFY(!globals);
    QVERIFY2(globals.error().message.find(why.toStdString()) != std::string::npos,
             globals.error().message.c_str());
}

QTEST_GUILESS_MAIN(TestCubinGlobals)
#include "tst_cubinglobals.moc"
