/**
 * The labelled set of `recall.ts`: by language, memories with a question each that asks for it in other words or
 * inflections, and what makes other memories that share their words. A line is `memory | question`.
 */

export interface TextsOfLanguage {
  readonly pairs: string;
  /** `{n}` is a name, `{a}` and `{b}` are of the lists. */
  readonly templates: readonly string[];
  readonly names: string;
  readonly a: string;
  readonly b: string;
}

export const texts: Readonly<Record<string, TextsOfLanguage>> = {
  en: {
    pairs: `
Ms Hargreaves is allergic to peanuts and must never get them in a hamper. | Which customers have allergies to peanuts?
Invoices for Northwind go to accounts@northwind.example, not to the buyer. | Where should the Northwind invoice be sent?
The warehouse in Leeds closes at 4 pm on Fridays. | What are the closing hours of the Leeds warehouse?
Oliver prefers phone calls to e-mail. | How does Oliver like to be contacted, is a phone call preferred?
Project Falcon was postponed to September because of missing permits. | Why is Falcon being postponed?
Mrs Okafor ordered twelve oak chairs with grey cushions. | How many chairs were in Okafor's order?
The contract with Brightwell expires on 30 June and renews automatically. | When is the Brightwell contract expiring?
Deliveries for the bakery must arrive before 6 am at the back door. | What time must we deliver to the bakery?
Our discount for schools is fifteen percent. | Do schools get discounts?
Priya's daughter studies veterinary medicine in Edinburgh. | What is Priya's daughter studying?
The printer on the third floor jams when the paper is damp. | Why does the printer keep jamming?
Tomasz travels to Lisbon every second week. | Where is Tomasz travelling regularly?
The customer at Elm Street complained twice about scratched tabletops. | Were there complaints about scratches?
Passwords of the test system are rotated on the first Monday of a month. | How often do we rotate test passwords?
Lucas drinks only decaffeinated coffee. | Does Lucas want coffee with caffeine or decaffeinated?
The refund for order 48213 was paid on 3 May. | Has 48213 been refunded?
Helen is responsible for security audits at Corvex. | Who has responsibility for audits at Corvex?
Shipping to Iceland takes nine working days. | How long do shipments to Iceland take?`,
    templates: [
      '{n} asked about {a} and wants an answer by {b}.',
      'The order of {n} includes {a}; it ships on {b}.',
      '{n} has a meeting about {a} on {b}.',
      'Note for {n}: {a} was discussed, next contact {b}.',
      'An invoice for {a} went to {n} on {b}.',
    ],
    names:
      'Oliver,Helen,Priya,Lucas,Tomasz,Northwind,Brightwell,Corvex,Ms Grant,Mr Dale,Okafor,Hargreaves',
    a: 'chairs,the contract,a discount,the warehouse,coffee,the delivery,passwords,shipping costs,a refund,the printer,the project,paper',
    b: 'Monday,Friday,3 May,June,September,the third week,tomorrow,30 June',
  },
  de: {
    pairs: `
Frau Lindner verträgt keine Haselnüsse. | Hat Frau Lindner eine Haselnussallergie?
Die Lieferadresse von Bergmann ist Hafenstraße 12 in Kiel. | An welche Adresse wird bei Bergmann geliefert?
Rechnungen an die Stadtwerke brauchen eine Bestellnummer. | Was muss auf der Rechnung der Stadtwerke stehen?
Herr Vogt bevorzugt Anrufe am Vormittag. | Wann sollte man Herrn Vogt anrufen?
Das Projekt Kranich wurde wegen fehlender Genehmigungen verschoben. | Warum verschiebt sich Kranich, fehlt eine Genehmigung?
Der Vertrag mit Sonnhof läuft am 31. März aus. | Wann endet die Vertragslaufzeit bei Sonnhof?
Familie Brandt bestellte acht Gartenstühle aus Teakholz. | Wie viele Stühle hat Familie Brandt in der Bestellung?
Für Schulen gilt ein Rabatt von zwölf Prozent. | Bekommt eine Schule Rabatte?
Das Lager in Bremen schließt freitags um 15 Uhr. | Welche Schließzeiten hat das Bremer Lager freitags?
Katharinas Sohn macht eine Ausbildung zum Bootsbauer. | Welche Ausbildungen machen die Söhne von Katharina?
Der Drucker im dritten Stock verliert Toner. | Welche Druckerprobleme mit dem Toner gibt es?
Herr Aydin trinkt ausschließlich Kräutertee. | Welchen Tee trinkt Herr Aydin?
Die Kündigungsfrist bei Helvetia beträgt drei Monate. | Mit welcher Frist kann man Helvetia kündigen?
Kundin Petersen beschwerte sich über zerkratzte Tischplatten. | Gab es Beschwerden über einen zerkratzten Tisch?
Die Passwörter der Testumgebung wechseln am Monatsersten. | Wann wird das Passwort in der Testumgebung gewechselt?
Jonas reist jede zweite Woche nach Porto. | Wohin geht die Reise von Jonas?
Die Ansprechpartnerin für Datenschutz ist Dr. Weiss. | Wer ist der Ansprechpartner beim Datenschutz?
Ersatzteile für die Presse kommen aus Linz. | Woher kommt das Ersatzteil der Presse?`,
    templates: [
      '{n} fragte nach {a} und wartet bis {b} auf eine Antwort.',
      'Die Bestellung von {n} enthält {a}, Versand am {b}.',
      '{n} hat am {b} ein Gespräch über {a}.',
      'Notiz zu {n}: {a} besprochen, nächster Kontakt {b}.',
      'Am {b} ging {a} an {n}.',
    ],
    names:
      'Frau Lindner,Bergmann,Stadtwerke,Herr Vogt,Sonnhof,Familie Brandt,Katharina,Herr Aydin,Helvetia,Petersen,Jonas,Dr. Weiss',
    a: 'Stühle,den Vertrag,einen Rabatt,das Lager,Tee,die Lieferung,Passwörter,Versandkosten,eine Erstattung,den Drucker,das Projekt,eine Rechnung',
    b: 'Montag,Freitag,3. Mai,Juni,September,nächste Woche,morgen,31. März',
  },
  fr: {
    pairs: `
Madame Girard est allergique aux crustacés. | Quelles allergies a Madame Girard ?
L'adresse de livraison de Dubois est 4 quai des Brumes à Nantes. | Où faut-il livrer chez Dubois ?
Les factures de Mirabel doivent porter un numéro de commande. | Que doit indiquer une facture pour Mirabel ?
Julien préfère être appelé après 18 heures. | Quelle est la préférence de Julien pour les appels ?
Le projet Hirondelle est reporté faute d'autorisation. | Pourquoi Hirondelle a-t-il été reportée ?
Le contrat avec Valmont expire le 15 novembre. | Quelle est la date d'expiration des contrats Valmont ?
La famille Perrin a commandé six fauteuils en cuir. | Combien de fauteuils dans la commande Perrin ?
Les écoles bénéficient d'une remise de dix pour cent. | Y a-t-il des remises pour une école ?
L'entrepôt de Lille ferme à 16 heures le vendredi. | À quelle heure est la fermeture de l'entrepôt lillois, à Lille ?
La fille de Nadia étudie l'architecture à Lyon. | Quelles études fait la fille de Nadia ?
L'imprimante du deuxième étage manque souvent de papier. | Les imprimantes ont-elles un problème de papier ?
Thomas boit seulement du thé vert sans sucre. | Que veut boire Thomas, un thé sucré ?
Le préavis de résiliation chez Orvane est de deux mois. | Comment résilier Orvane, quels préavis ?
La cliente Moreau s'est plainte de rayures sur la table. | Qui a envoyé des plaintes pour une table rayée ?
Les mots de passe sont renouvelés chaque trimestre. | Quand renouvelle-t-on le mot de passe ?
Camille voyage à Genève toutes les deux semaines. | Où sont les voyages de Camille ?
La responsable de la sécurité est Inès Caron. | Qui sont les responsables de la sécurité ?
Le remboursement de la commande 7731 a été effectué en mai. | La 7731 est-elle remboursée ?`,
    templates: [
      '{n} a demandé {a} et attend une réponse pour {b}.',
      'La commande de {n} comprend {a} ; départ {b}.',
      '{n} a une réunion sur {a} prévue {b}.',
      'Note sur {n} : {a}, prochain contact {b}.',
      'On a envoyé {a} à {n} {b}.',
    ],
    names:
      'Madame Girard,Dubois,Mirabel,Julien,Valmont,Perrin,Nadia,Thomas,Orvane,Moreau,Camille,Inès Caron',
    a: 'des fauteuils,le contrat,une remise,les entrepôts,du café,la livraison,le mot de passe,les frais de port,un avoir,le papier,le projet,une facture',
    b: 'lundi,vendredi,le 3 mai,en juin,en septembre,la semaine prochaine,demain,le 15 novembre',
  },
  es: {
    pairs: `
La señora Ibáñez es alérgica a los mariscos. | ¿Qué alergias tiene la señora Ibáñez?
La dirección de entrega de Solano es calle Mayor 8, Vigo. | ¿Dónde se entregan los pedidos de Solano?
La facturación de Almagro es siempre a fin de mes. | ¿Cuándo se factura a Almagro?
Rodrigo prefiere recibir mensajes por la tarde. | ¿Qué preferencia tiene Rodrigo para los mensajes?
El proyecto Colibrí fue aplazado por falta de permisos. | ¿Por qué se aplazó Colibrí, faltaba un permiso?
El contrato con Luarca vence el 20 de octubre. | ¿Qué vencimiento tienen los contratos de Luarca?
La familia Ortega pidió diez sillas de mimbre. | ¿Cuántas sillas tiene el pedido de Ortega?
Los colegios tienen un descuento del ocho por ciento. | ¿Hay descuentos para un colegio?
El almacén de Burgos cierra los viernes a las tres. | ¿Cuál es la hora de cierre del almacén en Burgos?
La hija de Marisol estudia enfermería en Granada. | ¿Qué estudios hace la hija de Marisol?
La impresora de recepción se atasca con papel húmedo. | ¿Por qué hay atascos en las impresoras?
Andrés bebe únicamente café descafeinado. | ¿Qué bebida quiere Andrés, café normal o descafeinado?
Para cancelar con Teruelsa hay que avisar con dos meses. | ¿Con cuánto aviso es la cancelación de Teruelsa?
La clienta Fuentes se quejó de rayones en la mesa. | ¿Quién presentó quejas por un rayón en la mesa?
Las contraseñas de pruebas se cambian cada trimestre. | ¿Cada cuánto cambia la contraseña de pruebas?
Beatriz viaja a Oporto cada quince días. | ¿Adónde son los viajes de Beatriz?
La responsable de auditorías es Lucía Prado. | ¿Quién es responsable de la auditoría?
El reembolso del pedido 9904 se hizo en mayo. | ¿Se ha reembolsado el 9904?`,
    templates: [
      '{n} preguntó por {a} y espera respuesta para {b}.',
      'El pedido de {n} incluye {a}; sale {b}.',
      '{n} tiene una reunión sobre {a} {b}.',
      'Nota de {n}: {a}, próximo contacto {b}.',
      'Se envió {a} a {n} {b}.',
    ],
    names:
      'la señora Ibáñez,Solano,Almagro,Rodrigo,Luarca,Ortega,Marisol,Andrés,Teruelsa,Fuentes,Beatriz,Lucía Prado',
    a: 'unas sillas,el contrato,un descuento,el almacén,café,la entrega,la contraseña,los gastos de envío,una devolución,papel,el proyecto,una factura',
    b: 'el lunes,el viernes,el 3 de mayo,en junio,en septiembre,la próxima semana,mañana,el 20 de octubre',
  },
  it: {
    pairs: `
La signora Ferri è allergica alle noci. | Quali allergie ha la signora Ferri?
L'indirizzo di consegna di Bassani è via Roma 3, Parma. | Dove si consegnano gli ordini di Bassani?
Le fatture di Montebello richiedono il codice univoco. | Che cosa serve sulla fattura di Montebello?
Matteo preferisce essere chiamato la mattina. | Quando vuole una chiamata Matteo?
Il progetto Airone è stato rinviato per mancanza di permessi. | Perché il rinvio di Airone, mancava un permesso?
Il contratto con Lagorai scade il 10 dicembre. | Qual è la scadenza dei contratti Lagorai?
La famiglia Conti ha ordinato quattro poltrone di velluto. | Quante poltrone ci sono nell'ordine dei Conti?
Le scuole hanno uno sconto del sette per cento. | Ci sono sconti per una scuola?
Il magazzino di Modena chiude alle 15 il venerdì. | Qual è l'orario di chiusura del magazzino di Modena?
La figlia di Chiara studia biologia a Pisa. | Che studi fa la figlia di Chiara?
La stampante dell'ufficio si blocca con la carta umida. | Perché le stampanti si bloccano?
Davide beve soltanto caffè decaffeinato. | Cosa vuole bere Davide, decaffeinato?
Il preavviso di disdetta con Vallenera è di sei settimane. | Con quali preavvisi si disdice Vallenera?
La cliente Greco si è lamentata dei graffi sul tavolo. | Chi ha mandato lamentele per un tavolo graffiato?
Le password di prova cambiano ogni trimestre. | Quando si cambia la password di prova?
Sara viaggia a Lugano ogni due settimane. | Dove sono i viaggi di Sara?
La responsabile della sicurezza è Elena Riva. | Chi sono i responsabili della sicurezza?
Il rimborso dell'ordine 5150 è avvenuto a maggio. | È stato rimborsato il 5150?`,
    templates: [
      '{n} ha chiesto di {a} e aspetta risposta per {b}.',
      "L'ordine di {n} comprende {a}; parte {b}.",
      '{n} ha una riunione su {a} {b}.',
      'Nota su {n}: {a}, prossimo contatto {b}.',
      'Abbiamo inviato {a} a {n} {b}.',
    ],
    names:
      'la signora Ferri,Bassani,Montebello,Matteo,Lagorai,Conti,Chiara,Davide,Vallenera,Greco,Sara,Elena Riva',
    a: 'delle sedie,il contratto,uno sconto,il magazzino,caffè,la consegna,la password,le spese di spedizione,un rimborso,la carta,il progetto,una fattura',
    b: 'lunedì,venerdì,il 3 maggio,a giugno,a settembre,la prossima settimana,domani,il 10 dicembre',
  },
  pt: {
    pairs: `
A senhora Teixeira é alérgica a amendoim. | Que alergias tem a senhora Teixeira?
O endereço de entrega da Marinho é rua das Flores 9, Braga. | Onde são entregues as encomendas da Marinho?
As faturas da Valadares precisam do número da encomenda. | O que deve ter uma fatura da Valadares?
O Bruno prefere ser contactado à tarde. | Qual é a preferência de contacto do Bruno?
O projeto Garça foi adiado por falta de licenças. | Porque houve adiamento do Garça, faltava uma licença?
O contrato com a Serralta termina em 12 de agosto. | Quando é o término dos contratos da Serralta?
A família Pacheco encomendou cinco mesas de pinho. | Quantas mesas tem a encomenda dos Pacheco?
As escolas têm um desconto de nove por cento. | Há descontos para uma escola?
O armazém de Aveiro fecha às 17 horas à sexta. | Qual é o horário de fecho do armazém de Aveiro?
A filha da Joana estuda farmácia em Coimbra. | Que estudos faz a filha da Joana?
A impressora do segundo andar encrava com papel fino. | Porque as impressoras ficam encravadas?
O Nuno só bebe chá de camomila. | Que bebidas quer o Nuno, chá de camomila?
O cancelamento da Torreal exige dois meses de aviso. | Como cancelar a Torreal, com quanto aviso?
A cliente Moura reclamou de riscos no tampo. | Quem fez reclamações sobre um risco no tampo?
As senhas de teste são trocadas por trimestre. | Quando se troca a senha de teste?
A Rita viaja para Madrid de duas em duas semanas. | Para onde são as viagens da Rita?
A responsável pelas auditorias é a Sofia Leal. | Quem é responsável pela auditoria?
O reembolso da encomenda 6620 foi feito em maio. | A 6620 já foi reembolsada?`,
    templates: [
      '{n} perguntou sobre {a} e espera resposta até {b}.',
      'A encomenda de {n} inclui {a}; sai {b}.',
      '{n} tem uma reunião sobre {a} {b}.',
      'Nota sobre {n}: {a}, próximo contacto {b}.',
      'Foi enviado {a} a {n} {b}.',
    ],
    names:
      'senhora Teixeira,Marinho,Valadares,Bruno,Serralta,Pacheco,Joana,Nuno,Torreal,Moura,Rita,Sofia Leal',
    a: 'umas cadeiras,o contrato,um desconto,o armazém,café,a entrega,a senha,os portes,uma devolução,papel,o projeto,uma fatura',
    b: 'segunda,sexta,3 de maio,junho,setembro,a próxima semana,amanhã,12 de agosto',
  },
  ru: {
    pairs: `
У Марины Соколовой аллергия на орехи. | Есть ли аллергии у Соколовой?
Адрес доставки Громова: улица Лесная, 5, Тверь. | По какому адресу доставлять Громову?
Счета для Полярис отправляют бухгалтеру. | Кому отправлять счёт Поляриса?
Игорь предпочитает звонки после обеда. | Какие у Игоря предпочтения, когда звонить?
Проект Журавль отложили из-за отсутствия разрешений. | Почему отложен Журавль, нет разрешения?
Договор с компанией Заря истекает 1 июля. | Какой срок истечения договора с Зарёй?
Семья Ковалёвых заказала семь дубовых стульев. | Сколько стульев в заказе Ковалёвых?
Школам положена скидка десять процентов. | Какие скидки у школы?
Склад в Рязани закрывается в пятницу в четыре часа. | Когда закрытие рязанского склада в пятницу?
Дочь Натальи изучает химию в Томске. | Что изучают дочери Натальи?
Принтер в приёмной зажёвывает влажную бумагу. | Почему принтеры зажевали бумагу?
Антон пьёт только зелёный чай без сахара. | Какого чая хочет Антон, зелёного?
Для расторжения с Вегой нужно уведомить за два месяца. | Как расторгнуть договорённости с Вегой?
Клиентка Фролова жаловалась на царапины на столе. | Кто присылал жалобы про царапину на столешнице?
Пароли тестовой системы меняют каждый квартал. | Когда меняется пароль от тестовой системы?
Дмитрий ездит в Казань через неделю. | Какие поездки в Казани у Дмитрия?
Ответственная за аудит — Ольга Белова. | Кто отвечает за аудиты, кто ответственный?
Возврат денег по заказу 3317 сделан в мае. | Вернули ли деньги за заказ 3317?`,
    templates: [
      '{n}: вопрос про {a}, ждёт ответ к {b}.',
      'Заказ от {n} включает {a}; отправка {b}.',
      '{n}: встреча про {a}, {b}.',
      'Заметка о клиенте {n}: {a}, следующий контакт {b}.',
      'Отправили {a} клиенту {n}, {b}.',
    ],
    names: 'Соколова,Громов,Полярис,Игорь,Заря,Ковалёвы,Наталья,Антон,Вега,Фролова,Дмитрий,Белова',
    a: 'стулья,договор,скидку,склад,кофе,доставку,пароль,стоимость отправки,возврат,бумагу,проект,счёт',
    b: 'понедельнику,пятнице,3 мая,июню,сентябрю,следующей неделе,завтра,1 июля',
  },
  ar: {
    pairs: `
السيدة ليلى تعاني من حساسية الفول السوداني. | هل لدى ليلى حساسية من الفول؟
عنوان التوصيل لشركة الندى هو شارع البحر في جدة. | أين يتم توصيل طلبات الندى، ما العنوان؟
ترسل فواتير المنار إلى قسم المحاسبة. | إلى أين نرسل فاتورة المنار؟
يفضل كريم الاتصال به مساء. | ما هو تفضيل كريم للاتصالات؟
تأجل مشروع الصقر بسبب نقص التصاريح. | لماذا تم تأجيل المشروع الصقر، هل ينقص تصريح؟
ينتهي عقد الواحة في أول يوليو. | متى نهاية عقود الواحة؟
طلبت عائلة الحداد ستة كراسي خشبية. | كم عدد الكراسي في طلب الحداد؟
تحصل المدارس على خصم عشرة بالمئة. | هل يوجد خصومات للمدرسة؟
يغلق مستودع الرياض الساعة الرابعة يوم الجمعة. | متى إغلاق المستودع في الرياض؟
ابنة سعاد تدرس الصيدلة في عمان. | ماذا تدرس البنت، ابنة سعاد، أي دراسة؟
طابعة الاستقبال تتعطل مع الورق الرطب. | لماذا تعطلت الطابعات؟
يشرب مروان الشاي الأخضر فقط. | ما شراب مروان، هل هو شاي؟
إلغاء اشتراك النخيل يتطلب إشعارا قبل شهرين. | كيف نلغي الاشتراك مع النخيل؟
اشتكت العميلة هدى من خدوش على الطاولة. | من قدم شكوى عن خدش في الطاولات؟
تتغير كلمات مرور الاختبار كل ثلاثة أشهر. | متى تغيير كلمة المرور للاختبار؟
يسافر طارق إلى دبي كل أسبوعين. | إلى أين سفر طارق؟
المسؤولة عن التدقيق هي سمر. | من هو المسؤول عن تدقيق الحسابات؟
تم رد مبلغ الطلب 8841 في مايو. | هل تم رد المبالغ للطلب 8841؟`,
    templates: [
      'سأل {n} عن {a} وينتظر الرد {b}.',
      'يشمل طلب {n} {a}، الشحن {b}.',
      'لدى {n} اجتماع حول {a} {b}.',
      'ملاحظة عن {n}: {a}، التواصل القادم {b}.',
      'أرسلنا {a} إلى {n} {b}.',
    ],
    names: 'ليلى,الندى,المنار,كريم,الواحة,الحداد,سعاد,مروان,النخيل,هدى,طارق,سمر',
    a: 'الكراسي,العقد,الخصم,المستودع,القهوة,التوصيل,كلمة المرور,تكاليف الشحن,الاسترداد,الورق,المشروع,الفاتورة',
    b: 'يوم الاثنين,يوم الجمعة,في مايو,في يونيو,في سبتمبر,الأسبوع القادم,غدا,في يوليو',
  },
  zh: {
    pairs: `
王女士对花生过敏,礼盒里不能放。 | 哪位客户有花生过敏史?
华远公司的收货地址是青岛市海滨路18号。 | 华远的货要送到哪个地址?
恒信的发票必须注明订单编号。 | 给恒信开发票要写什么?
李强喜欢下午接电话。 | 什么时候给李强打电话?
白鹭项目因为缺少许可证而推迟。 | 为什么白鹭项目被推迟了?
与晨光的合同将于六月三十日到期。 | 晨光合同什么时候到期?
陈家订购了八把橡木椅子。 | 陈家买了多少把椅子?
学校可以享受九折优惠。 | 对学校有什么优惠?
苏州仓库星期五下午四点关门。 | 苏州的仓库几点关门?
赵敏的女儿在成都学医。 | 赵敏的女儿在学什么?
三楼的打印机遇到潮湿的纸会卡纸。 | 打印机为什么经常卡纸?
孙浩只喝无糖绿茶。 | 孙浩爱喝什么茶?
取消蓝海的服务需要提前两个月通知。 | 怎么取消蓝海服务?
周女士投诉桌面有划痕。 | 谁投诉过桌子的划痕?
测试系统的密码每季度更换一次。 | 测试密码多久更换?
吴磊每两周去一次深圳出差。 | 吴磊去哪里出差?
负责安全审计的是林静。 | 安全审计由谁负责?
订单7405的退款已在五月完成。 | 7405退款了吗?`,
    templates: [
      '{n}询问了{a},希望{b}得到答复。',
      '{n}的订单包括{a},{b}发货。',
      '{n}{b}要开会讨论{a}。',
      '备注:{n},已谈{a},下次联系{b}。',
      '{b}把{a}寄给了{n}。',
    ],
    names: '王女士,华远公司,恒信,李强,晨光,陈家,赵敏,孙浩,蓝海,周女士,吴磊,林静',
    a: '椅子,合同,折扣,仓库,咖啡,送货,密码,运费,退款,打印纸,项目,发票',
    b: '星期一,星期五,五月三日,六月,九月,下周,明天,六月三十日',
  },
  ja: {
    pairs: `
山本様はえびアレルギーがあります。 | えびのアレルギーがあるお客様は?
青葉商事の配送先は横浜市港町5番です。 | 青葉商事への配送はどこに送りますか?
大和の請求書には注文番号が必要です。 | 大和に請求するとき何が必要?
佐藤さんは午後の電話を希望しています。 | 佐藤さんの希望する電話の時間は?
つばめプロジェクトは許可が下りず延期されました。 | つばめプロジェクトが延期になった理由は?
光輝との契約は六月末に終了します。 | 光輝の契約終了はいつですか?
木村家は樫の椅子を七脚注文しました。 | 木村家が注文した椅子の数は?
学校には一割引が適用されます。 | 学校の割引はありますか?
神戸の倉庫は金曜日に四時で閉まります。 | 神戸倉庫が閉まる時間は?
恵子さんの娘は京都で薬学を学んでいます。 | 恵子さんの娘は何を学んでいますか?
三階のプリンターは湿った紙で詰まります。 | プリンターがよく詰まる原因は?
健太さんは砂糖なしの緑茶だけを飲みます。 | 健太さんが飲むお茶は?
星野の解約には二か月前の通知が必要です。 | 星野を解約したい場合の通知は?
中村様から机の傷について苦情がありました。 | 机の傷で苦情を言ったのは誰?
テスト環境のパスワードは毎月変更します。 | テスト環境でパスワードを変更する頻度は?
拓也さんは隔週で福岡に出張します。 | 拓也さんの出張先はどこ?
監査の担当は小林真理です。 | 監査を担当するのは誰ですか?
注文2298の返金は五月に済みました。 | 2298は返金されましたか?`,
    templates: [
      '{n}から{a}について質問があり、{b}までに回答します。',
      '{n}の注文には{a}が含まれ、{b}に発送します。',
      '{n}は{b}に{a}の会議があります。',
      'メモ:{n}、{a}の件、次の連絡は{b}。',
      '{b}に{a}を{n}へ送りました。',
    ],
    names: '山本様,青葉商事,大和,佐藤さん,光輝,木村家,恵子さん,健太さん,星野,中村様,拓也さん,小林',
    a: '椅子,契約,割引,倉庫,コーヒー,配送,パスワード,送料,返金,印刷用紙,プロジェクト,請求書',
    b: '月曜日,金曜日,五月三日,六月,九月,来週,明日,六月末',
  },
  ko: {
    pairs: `
김 여사님은 땅콩 알레르기가 있습니다. | 땅콩에 알레르기 있는 고객은?
한빛상사의 배송지는 부산시 해운대로 7번지입니다. | 한빛상사에 배송할 주소는 어디인가요?
대성의 세금계산서에는 주문번호가 필요합니다. | 대성 세금계산서를 보낼 때 필요한 것은?
민수는 오후에 전화받는 것을 선호합니다. | 민수가 선호하는 전화 시간은?
두루미 프로젝트는 허가가 없어서 연기되었습니다. | 두루미 프로젝트를 왜 연기했나요?
새벽과의 계약은 유월 말에 만료됩니다. | 새벽 계약이 언제 만료되나요?
박씨 가족은 참나무 의자 여덟 개를 주문했습니다. | 박씨 가족이 주문한 의자는 몇 개인가요?
학교는 십 퍼센트 할인을 받습니다. | 학교에 할인이 있나요?
대구 창고는 금요일 네 시에 닫습니다. | 대구 창고가 닫는 시간은?
은정의 딸은 전주에서 약학을 공부합니다. | 은정의 딸이 공부하는 것은?
삼층 프린터는 젖은 종이에 걸립니다. | 프린터에 종이가 왜 걸리나요?
준호는 설탕 없는 녹차만 마십니다. | 준호가 마시는 차는?
은하 해지는 두 달 전에 통보해야 합니다. | 은하를 해지하려면 언제 통보하나요?
최 고객님이 책상 흠집에 대해 불만을 제기했습니다. | 책상에 흠집이 있다고 불만을 말한 사람은?
테스트 비밀번호는 분기마다 바꿉니다. | 테스트 비밀번호를 언제 바꾸나요?
상우는 격주로 제주에 출장을 갑니다. | 상우의 출장은 어디로 가나요?
감사 담당자는 윤서연입니다. | 감사를 담당하는 사람은 누구?
주문 5583의 환불은 오월에 끝났습니다. | 5583은 환불되었나요?`,
    templates: [
      '{n} 님이 {a}에 대해 물었고 {b}까지 답을 기다립니다.',
      '{n}의 주문에는 {a}가 있으며 {b}에 발송합니다.',
      '{n}는 {b}에 {a} 회의가 있습니다.',
      '메모: {n}, {a} 논의, 다음 연락 {b}.',
      '{b}에 {a}를 {n}에게 보냈습니다.',
    ],
    names: '김 여사,한빛상사,대성,민수,새벽,박씨,은정,준호,은하,최 고객,상우,윤서연',
    a: '의자,계약,할인,창고,커피,배송,비밀번호,운임,환불,종이,프로젝트,세금계산서',
    b: '월요일,금요일,오월 삼일,유월,구월,다음 주,내일,유월 말',
  },
  tr: {
    pairs: `
Ayşe Hanım'ın fıstığa alerjisi var. | Kimin fıstık alerjisi bulunuyor?
Yıldız firmasının teslimat adresi İzmir'de Liman Caddesi 6. | Yıldız'a hangi adrese teslim edilecek?
Kartal'ın faturaları muhasebeye gönderilir. | Kartal faturası nereye gönderilmeli?
Emre öğleden sonra aranmayı tercih eder. | Emre'nin arama tercihleri nedir?
Turna projesi izinler eksik olduğu için ertelendi. | Turna'nın ertelenme nedeni hangi izin?
Pınar şirketiyle sözleşme 30 Haziran'da bitiyor. | Pınar sözleşmesinin bitiş tarihi ne?
Demir ailesi dokuz ahşap sandalye sipariş etti. | Demir ailesinin siparişinde kaç sandalye var?
Okullara yüzde on indirim yapılır. | Okul için indirimler var mı?
Bursa deposu cuma günleri saat dörtte kapanır. | Bursa'daki deponun kapanış saati nedir?
Zeynep'in kızı Eskişehir'de hukuk okuyor. | Zeynep'in kızının okuduğu bölüm ne?
Üçüncü kattaki yazıcı nemli kâğıtta sıkışıyor. | Yazıcıda kâğıt neden sıkıştı?
Burak yalnızca şekersiz yeşil çay içer. | Burak hangi çayı içiyor?
Akdeniz aboneliğini iptal etmek için iki ay önce bildirim gerekir. | Akdeniz aboneliğinin iptali nasıl yapılır?
Müşteri Şahin masadaki çiziklerden şikâyet etti. | Masa çizikleri için şikâyetçi olan müşteriler kim?
Deneme sisteminin parolaları üç ayda bir değişir. | Deneme sistemi parolası ne zaman değiştirilir?
Selin iki haftada bir Antalya'ya seyahat eder. | Selin'in seyahatleri nereye?
Denetimlerden sorumlu kişi Elif Kaya'dır. | Denetimin sorumlusu kim?
4472 numaralı siparişin iadesi mayısta yapıldı. | 4472 iade edildi mi?`,
    templates: [
      '{n} {a} hakkında soru sordu, {b} yanıt bekliyor.',
      '{n} siparişinde {a} var; gönderim {b}.',
      '{n} için {b} {a} toplantısı var.',
      'Not: {n}, {a} konuşuldu, sonraki görüşme {b}.',
      '{b} {n} adına {a} gönderildi.',
    ],
    names:
      'Ayşe Hanım,Yıldız,Kartal,Emre,Pınar,Demir ailesi,Zeynep,Burak,Akdeniz,Şahin,Selin,Elif Kaya',
    a: 'sandalye,sözleşme,indirim,depo,kahve,teslimat,parola,kargo ücreti,iade,kâğıt,proje,fatura',
    b: 'pazartesi,cuma,3 Mayıs,haziranda,eylülde,gelecek hafta,yarın,30 Haziran',
  },
};
