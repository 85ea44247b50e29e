// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/paths.h"
#include "tests/ui/common/uitest.h"
#include "ui/machine/code/machinecode.h"
#include "ui/machine/code/ptx.h"

#include <QFile>
#include <QTest>

#include <filesystem>

using namespace klineage;
using namespace klineage::ui;

Q_DECLARE_METATYPE(klineage::ui::OpcodeClass)

namespace {

constexpr char twoKernels[] = R"(
// a comment with { braces; and .entry words(
.version 9.0
.target sm_90a
.address_size 64
	// .globl	first
.global .align 1 .b8 $str[3] = {37, 100, 0};
.extern .func  (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0
)
;
.visible .entry first(
	.param .u64 first_param_0
)
.maxntid 384, 1, 1
{
	.reg .pred 	%p<3>;
	.loc	1 288 0
	mov.b64 	%rd13, first_param_0;
	.loc	1 304 13
	.loc	2 68 5, function_name $L__info_string0, inlined_at 1 304 13
	mbarrier.init.shared::cta.b64 [%r634], %r667;
	.loc	3 9 1, function_name $L__info_string1, inlined_at 2 68 5
	fma.rn.f32 %f1, %f2, %f3, %f4;
	.loc	3 10 1
	@!%p4 bra 	$L__BB0_2;
	// begin inline asm
	{ .reg .pred p; setp.ne.b32 p, %r1, 0;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2}, %rd1, %rd2, p, 1, 1; }
	// end inline asm
$L__BB0_2:
	{ // callseq 0, 0
	call.uni (retval0),
	vprintf,
	(
	param0
	);
	} // callseq 0
	ret;
}
.func (.param .b32 r) helper(.param .b32 a)
{
	.loc 1 12 1
	add.s32 %r1, %r2, 1;
	ret;
}
	.file	1 "/somewhere/K13.cu"
	.file	2 "/usr/include/cuda/barrier.h", 12, 34
	.file	3 "other.h"
	.section	.debug_str
	{
$L__info_string0:
.b8 95,90,0
	}
)";

gate::ListedInstruction sampled(const char *kernel, int line, std::int64_t samples, const char *text)
{
    return {kernel, 0, line, samples, {{"wait", samples / 2}, {"selected", samples}}, text};
}

QStringList words(std::string_view text)
{
    QStringList out;
    for (const CodeSpan &span : codeSpans(text))
        out << QString::number(static_cast<int>(span.token)) + QLatin1Char(':')
                   + QString::fromStdString(std::string(text.substr(span.begin, span.length)));
    return out;
}

std::vector<std::filesystem::path> shippedLineages()
{
    std::vector<std::filesystem::path> found;
    for (const auto &entry :
         std::filesystem::recursive_directory_iterator(klineage::test::sourcePath("/workloads"))) {
        if (entry.path().filename() == "listings")
            found.push_back(entry.path());
    }
    return found;
}

} // namespace

class TestMachineCode : public UiTest
{
    Q_OBJECT

private slots:
    void opcodesHaveClasses_data()
    {
        QTest::addColumn<bool>("isPtx");
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<OpcodeClass>("expected");
        const auto row = [](bool isPtx, const char *text, OpcodeClass expected) {
            QTest::newRow(text) << isPtx << QByteArray(text) << expected;
        };
        using C = OpcodeClass;
        row(false, "HGMMA.64x128x16.F32 R24, gdesc[UR8], R24, gsb0", C::WarpgroupProduct);
        row(false, "HMMA.16816.F32 R4, R8, R12, R4", C::WarpProduct);
        row(false, "UTMALDG.3D [UR8], [UR4], desc[UR6]", C::TensorCopy);
        row(false, "LDGSTS.E.BYPASS.128 [R1], [R2.64]", C::AsyncCopy);
        row(false, "@P0 LDG.E.128 R4, [R2.64]", C::GlobalLoad);
        row(false, "STG.E.64 [R2.64], R4", C::GlobalStore);
        row(false, "LDSM.16.M88.4 R4, [R2]", C::SharedLoad);
        row(false, "STS.128 [R2], R4", C::SharedStore);
        row(false, "STL [R1], R4", C::LocalMemory);
        row(false, "ULDC.64 UR6, c[0x0][0x208]", C::Constant);
        row(false, "ATOMS.ADD RZ, [R2], R3", C::Atomic);
        row(false, "BAR.SYNC.DEFER_BLOCKING 0x0", C::Barrier);
        row(false, "SYNCS.EXCH.64 URZ, [UR10], UR4", C::Barrier);
        row(false, "UCGABAR_WAIT", C::Barrier);
        row(false, "MUFU.EX2 R4, R5", C::SpecialFunction);
        row(false, "FFMA.FTZ R4, R5, R6, R7", C::Fp32);
        row(false, "HADD2.F32 R4, -RZ, R5.H0_H0", C::Fp16);
        row(false, "DFMA R4, R6, R8, R10", C::Fp64);
        row(false, "IMAD.MOV.U32 R4, RZ, RZ, R5", C::IntegerMultiply);
        row(false, "UIADD3 UR6, -UR6, 0x100000, URZ", C::Integer);
        row(false, "VIADD R4, R5, 0x1", C::Integer);
        row(false, "F2FP.F16.F32.PACK_AB R4, R5, R6", C::Convert);
        row(false, "S2UR UR10, SR_CgaCtaId", C::Move);
        row(false, "SHFL.IDX PT, R2, R2, RZ, 0x1f", C::Shuffle);
        row(false, "USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xa0", C::Control);
        row(false, "@!P0 BRA `(.L_x_2)", C::Control);
        row(false, "NOP", C::Other);
        row(false, "U", C::Other);
        row(true, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1}, %rd1", C::WarpgroupProduct);
        row(true, "wgmma.wait_group.sync.aligned 0", C::Barrier);
        row(true, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}", C::WarpProduct);
        row(true, "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1]",
            C::TensorCopy);
        row(true, "cp.async.bulk.commit_group", C::Barrier);
        row(true, "cp.async.cg.shared.global [%r1], [%rd1], 16", C::AsyncCopy);
        row(true, "cp.async.mbarrier.arrive.noinc.shared.b64 [%r1]", C::Barrier);
        row(true, "ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1]", C::GlobalLoad);
        row(true, "ld.u32 %r1, [%rd1]", C::GlobalLoad);
        row(true, "ld.param.u64 %rd1, [k_param_0]", C::Constant);
        row(true, "st.shared::cta.b32 [%r1], %r2", C::SharedStore);
        row(true, "ld.local.f32 %f1, [%rd1]", C::LocalMemory);
        row(true, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1}, [%r2]", C::SharedLoad);
        row(true, "red.global.add.f32 [%rd1], %f1", C::Atomic);
        row(true, "ex2.approx.ftz.f32 %f1, %f2", C::SpecialFunction);
        row(true, "@%p1 fma.rn.f32 %f1, %f2, %f3, %f4", C::Fp32);
        row(true, "setp.lt.f32 %p1, %f1, %f2", C::Fp32);
        row(true, "fma.rn.f16x2 %r1, %r2, %r3, %r4", C::Fp16);
        row(true, "add.f64 %fd1, %fd2, %fd3", C::Fp64);
        row(true, "mad.lo.s32 %r1, %r2, %r3, %r4", C::IntegerMultiply);
        row(true, "add.s32 %r1, %r2, 1", C::Integer);
        row(true, "cvt.rn.f16x2.f32 %r1, %f1, %f2", C::Convert);
        row(true, "cvta.to.global.u64 %rd1, %rd2", C::Move);
        row(true, "shfl.sync.idx.b32 %r3|%p1, %r630, %r632, %r631, %r633", C::Shuffle);
        row(true, "setmaxnreg.dec.sync.aligned.u32 24", C::Control);
        row(true, "pmevent 3", C::Other);
    }

    void opcodesHaveClasses()
    {
        QFETCH(bool, isPtx);
        QFETCH(QByteArray, text);
        QFETCH(OpcodeClass, expected);
        const CodeForm form = isPtx ? CodeForm::Ptx : CodeForm::Sass;
        QCOMPARE(static_cast<int>(classOf(form, opcodeOf(text.toStdString()))), static_cast<int>(expected));
    }

    void instructionsHaveParts()
    {
        QCOMPARE(words("@!P0 BRA `(.L_x_1)"), QStringList({"0:@!P0", "1:BRA", "3:.L_x_1"}));
        QCOMPARE(words("IADD3 R2, R2, 0x1, RZ"), QStringList({"1:IADD3", "2:0x1"}));
        QCOMPARE(words("@%p4 bra $L__BB0_2"), QStringList({"0:@%p4", "1:bra", "3:$L__BB0_2"}));
        QCOMPARE(words("$L__BB0_2:"), QStringList({"3:$L__BB0_2:"}));
        QCOMPARE(words(""), QStringList());
        QCOMPARE(words("   "), QStringList());
        QCOMPARE(words("@"), QStringList({"0:@"}));
        QVERIFY(opcodeOf("$L__BB0_2:").empty());
    }

    void ptxSaysWhereItComesFrom()
    {
        const auto read = parsePtx(twoKernels, "K13.cu");
        QVERIFY2(read, read ? "" : read.error().message.c_str());
        struct Expected {
            const char *kernel;
            int line;
            const char *begins;
        };
        const Expected expected[] = {
            {"first", 288, "mov.b64 %rd13, first_param_0"},
            {"first", 304, "mbarrier.init"}, // in a header, inlined in the candidate
            {"first", 304, "fma.rn.f32"},    // through another header
            {"first", 0, "@!%p4 bra $L__BB0_2"},
            {"first", 0, "setp.ne.b32 p, %r1, 0"},
            {"first", 0, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2}, %rd1"},
            {"first", 0, "$L__BB0_2:"},
            {"first", 0, "call.uni (retval0), vprintf, ( param0 )"},
            {"first", 0, "ret"},
            {"helper", 12, "add.s32 %r1, %r2, 1"},
            {"helper", 12, "ret"},
        };
        QCOMPARE(read->size(), std::size(expected));
        for (std::size_t i = 0; i < read->size(); ++i) {
            const gate::ListedInstruction &one = (*read)[i];
            QCOMPARE(one.kernel, std::string(expected[i].kernel));
            QVERIFY2(one.text.starts_with(expected[i].begins), one.text.c_str());
            QVERIFY2(one.line == expected[i].line, one.text.c_str());
        }
        QCOMPARE((*read)[0].offset, std::uint64_t{20});
    }

    void whatIsNoPtxIsRefusedOrEmpty_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<bool>("isRefused");
        QTest::newRow("nothing") << QByteArray() << false;
        QTest::newRow("prose") << QByteArray("The quick brown fox; jumps: over } the { dog }") << false;
        QTest::newRow("cut off") << QByteArray(".entry k() { ret;") << true;
        QTest::newRow("no end of a comment") << QByteArray(".entry k() { ret; /* }") << true;
        QTest::newRow("no end of a string") << QByteArray(".entry k() { .file 1 \"x") << true;
        QTest::newRow("one long statement")
            << QByteArray(".entry k() { mov ") + QByteArray(int(maxPtxStatementBytes) + 10, 'a') + "; }"
            << true;
        QTest::newRow("too many instructions")
            << QByteArray(".entry k() {") + QByteArray("a;").repeated(int(maxCodeRows) + 1) + "}" << true;
        QTest::newRow("too long") << QByteArray(int(maxPtxBytes) + 1, ' ') << true;
        QTest::newRow("closing too often")
            << QByteArray(".entry k() { ret; } } } } .entry l() { ret; }") << false;
        QTest::newRow("numbers that do not fit")
            << QByteArray(".entry k() { .loc 99999999999 1 1\n.loc 1\n.loc\nret; }") << false;
    }

    void whatIsNoPtxIsRefusedOrEmpty()
    {
        QFETCH(QByteArray, text);
        QFETCH(bool, isRefused);
        const auto read = parsePtx(text.toStdString(), "k.cu");
        QCOMPARE(!read, isRefused);
        if (!read)
            QVERIFY2(read.error().message.starts_with("Cannot read the PTX of k.cu"),
                     read.error().message.c_str());
    }

    /// Cut anywhere, and with any byte changed: it is read or refused, and never shows what cannot be printed.
    void damagedPtxDoesNoHarm()
    {
        const std::string whole = twoKernels;
        for (std::size_t cut = 0; cut < whole.size(); cut += 3)
            (void)parsePtx(whole.substr(0, cut), "K13.cu");
        for (std::size_t at = 0; at < whole.size(); ++at) {
            for (const char c : {'\0', '{', '}', ';', '"', '\xff', '/'}) {
                std::string damaged = whole;
                damaged[at] = c;
                const auto read = parsePtx(damaged, "K13.cu");
                if (!read)
                    continue;
                for (const gate::ListedInstruction &one : *read) {
                    for (const char shown : one.text)
                        QVERIFY(shown >= ' ' && static_cast<unsigned char>(shown) < 0x7f);
                }
            }
        }
    }

    void rowsAreFoundByLineAndHeat()
    {
        gate::Listing listing{"nvrtc 13.0",
                              {sampled("a", 5, 10, "LDG.E R1, [R2.64]"),
                               sampled("a", 7, 0, "FFMA R1, R2, R3, R4"),
                               sampled("a", 5, 30, "LDG.E R1, [R2.64]"), sampled("b", 5, 20, "EXIT"),
                               sampled("b", 0, 4, "NOP\x01\xc3")}};
        const auto code = makeMachineCode(CodeForm::Sass, listing);
        QVERIFY(code);
        QCOMPARE(code->rows.size(), std::size_t{7}); // with the names of two kernels
        QCOMPARE(code->rows[0].text, std::string("a"));
        QVERIFY(code->rows[4].kind == CodeRow::Kind::Kernel);
        QCOMPARE(code->instructions, 5);
        QCOMPARE(code->samples, std::int64_t{64});
        QCOMPARE(code->mostSamples, std::int64_t{30});
        const auto rows = code->rowsOf(5);
        QCOMPARE(std::vector<int>(rows.begin(), rows.end()), (std::vector<int>{1, 3, 5}));
        QVERIFY(code->rowsOf(0).empty());
        QVERIFY(code->rowsOf(99).empty());
        QCOMPARE(code->hottest, (std::vector<int>{3, 5, 1, 6}));
        QCOMPARE(code->rows[6].text, std::string("NOP??"));
        QCOMPARE(code->mix[static_cast<std::size_t>(OpcodeClass::GlobalLoad)], std::int64_t{2});
        QCOMPARE(largestStall(code->rows[3]).first, std::string("wait")); // "selected" did not wait
        QVERIFY(largestStall(code->rows[2]).first.empty());
        const std::vector<int> wanted{0, 3, 99, -1};
        QCOMPARE(rowsAsText(*code, wanted),
                 std::string("a:\n     5        30  wait                  LDG.E R1, [R2.64]\n"));
        listing.instructions.resize(maxCodeRows + 1);
        QVERIFY(!makeMachineCode(CodeForm::Sass, listing));
    }

    /// Of the listings that ship hardly an instruction is without a class, and the counts add up.
    void shippedListingsAreUnderstood()
    {
        int listings = 0;
        for (const std::filesystem::path &folder : shippedLineages()) {
            for (const auto &file : std::filesystem::directory_iterator(folder)) {
                QFile bytes(QString::fromStdString(file.path().string()));
                QVERIFY(bytes.open(QIODevice::ReadOnly));
                auto listing = gate::parseListing(bytes.readAll().toStdString(), file.path().string());
                QVERIFY2(listing, listing ? "" : listing.error().message.c_str());
                const auto code = makeMachineCode(CodeForm::Sass, std::move(*listing));
                QVERIFY(code);
                std::int64_t counted = 0;
                for (const std::int64_t count : code->mix)
                    counted += count;
                QCOMPARE(counted, std::int64_t{code->instructions});
                for (const CodeRow &row : code->rows) {
                    const std::string_view opcode = opcodeOf(row.text);
                    const bool isKnown = row.kind != CodeRow::Kind::Instruction
                                         || row.opcode != OpcodeClass::Other || opcode == "NOP"
                                         || opcode.starts_with("CCTL");
                    QVERIFY2(isKnown, row.text.c_str());
                }
                QVERIFY(code->samples > 0);
                QCOMPARE(code->hottest.size(), hottestCount);
                ++listings;
            }
        }
        QVERIFY(listings >= 50);
    }
};

KLINEAGE_UI_TEST(TestMachineCode)
#include "tst_machinecode.moc"
